import { PARTITIONS } from '../storage/hooks/lanes.ts';

/**
 * The number of partitions that a node should hold. All nodes compute it from the same list of nodes. So their shares
 * add up to all partitions, and no partition moves while the list is unchanged.
 *
 * @param nodes ids of all live nodes, in the same order on every node
 */
export function fairShare(node: string, nodes: readonly string[]): number {
  const rank = nodes.indexOf(node);
  if (rank === -1) return 0;
  return Math.floor(PARTITIONS / nodes.length) + (rank < PARTITIONS % nodes.length ? 1 : 0);
}

/**
 * Selects `count` partitions to release: the least busy ones, since the lanes of a partition pause until its requests
 * in flight are answered.
 *
 * @param busy number of lanes with something to do, by partition
 */
export function leastBusy(held: readonly number[], count: number, busy: ReadonlyMap<number, number>): number[] {
  const load = (partition: number): number => busy.get(partition) ?? 0;
  return [...held].sort((a, b) => load(a) - load(b) || b - a).slice(0, Math.max(0, count));
}
