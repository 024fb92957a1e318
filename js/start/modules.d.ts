// What a bundler for an edge runtime makes of an import of the wasm: a WebAssembly.Module.
declare module '*.wasm' {
  const module: object;
  export default module;
}
declare module '*.wasm?module' {
  const module: object;
  export default module;
}
