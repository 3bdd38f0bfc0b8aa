import { hookWords } from '../../words/hook-words.ts';

const ICONS: Readonly<Record<string, string>> = { active: '●', failing: '▲', parked: '■', paused: '❚❚', removed: '✕' };

/** The state of a reverse webhook in colour, icon and word. */
export function HookStateMark({ state }: { readonly state: string }) {
  return (
    <span class={`hook-state ${state}`}>
      <span aria-hidden="true">{ICONS[state] ?? '?'}</span> {hookWords.state[state] ?? state}
    </span>
  );
}
