const encoder = new TextEncoder();
// A byte order mark is content like any other, and what is no UTF-8 was not put by us.
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** @internal A content as bytes. */
export function encode(content: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(content);
}

/** @internal The content that these bytes are, to the character. */
export function decode(bytes: ArrayBuffer | Uint8Array): string {
  return decoder.decode(bytes);
}
