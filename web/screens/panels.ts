// One file for all panels: each import of its own would make the first load one file more.
export { AccountPanel } from './account-panel.tsx';
export { GroupPanel } from './group-panel.tsx';
