import { isLogged, seqOf, type History } from './history.ts';

/**
 * The rule "Epochs": a server that lost changes begins a new epoch, so that no id of a lost message or change is used
 * again.
 */
export function judgeEpochs({ actions }: History): string[] {
  const violations: string[] = [];
  const ids = new Set<string>();
  let newest = 0;
  let leastOfNew = 0;
  for (const action of actions) {
    if (action.type === 'restored') leastOfNew = newest + 1;
    if (!isLogged(action)) continue;
    const { message, rev } = action;
    const given = [
      `rev ${rev.number} of epoch ${rev.epoch}`,
      ...(action.type === 'posted' ? [`message ${message}`] : []),
    ];
    for (const id of given) {
      if (ids.has(id)) violations.push(`${id} was given out twice`);
      ids.add(id);
    }
    const epoch = action.type === 'posted' ? seqOf(message).epoch : rev.epoch;
    if (epoch < leastOfNew) violations.push(`${given[0]} is of no new epoch, though changes were lost before`);
    newest = Math.max(newest, epoch);
  }
  return violations;
}
