import './start/edge-light.js';

export * from './slim.js';
