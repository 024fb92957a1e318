import './start/inline.js';

export * from './slim.js';
