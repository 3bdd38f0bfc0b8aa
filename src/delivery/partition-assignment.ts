import { PARTITIONS } from '../storage/hooks/lanes.ts';

/**
 * How many partitions a node is to hold beside the others. Every node reckons with the same list, so that the shares add
 * up to all partitions, and nothing moves while the list stays as it is.
 *
 * @param nodes ids of all nodes that live, in one order for everybody
 */
export function fairShare(node: string, nodes: readonly string[]): number {
  const rank = nodes.indexOf(node);
  if (rank === -1) return 0;
  return Math.floor(PARTITIONS / nodes.length) + (rank < PARTITIONS % nodes.length ? 1 : 0);
}

/**
 * Which partitions to give back: those with the least going on, since the lanes of a partition rest until what is in
 * flight in it was answered.
 *
 * @param busy lanes of a partition that have something to do
 */
export function leastBusy(held: readonly number[], count: number, busy: ReadonlyMap<number, number>): number[] {
  const load = (partition: number): number => busy.get(partition) ?? 0;
  return [...held].sort((a, b) => load(a) - load(b) || b - a).slice(0, Math.max(0, count));
}
