import type { Action, Arrival, History } from './history.ts';

/**
 * Returns a line for each action and arrival of a hook, with ids and without texts. The lines help to find the cause of
 * a violation.
 */
export function timelineOf({ actions }: History, hook: number, arrivals: readonly Arrival[]): string[] {
  const lines = [
    ...actions
      .filter((action) => !('hook' in action) || action.hook === hook)
      .map((action) => ({ at: action.asked, line: `${action.asked}-${action.answered} ${describe(action)}` })),
    ...arrivals.map(({ arrived, ended, status, webhookId, items }) => {
      const states = items.map(({ rev }) => rev.number).join(' ');
      return { at: arrived, line: `${arrived}-${ended}     ${webhookId} (${states}) answered ${status ?? 'not'}` };
    }),
  ];
  return lines.sort((a, b) => a.at - b.at).map(({ line }) => line);
}

function describe(action: Action): string {
  const left = ['asked', 'answered', 'type', 'hook', 'text'];
  return `${action.type} ${JSON.stringify(action, (key, value: unknown) => (left.includes(key) ? undefined : value))}`;
}
