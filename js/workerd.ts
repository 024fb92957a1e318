import './start/workerd.js';

export * from './slim.js';
