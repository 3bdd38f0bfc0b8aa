import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import type { ReplicationLag, ReplicationReport } from '../storage/replication-report.ts';
import { formatBytes } from './disk.ts';
import { error, ok, warning, type CheckResult } from './finding.ts';

/** Finds all addresses of a host name. */
type AddressLookup = (name: string) => Promise<readonly { readonly address: string; readonly family: number }[]>;

/**
 * Results about replication: what a failover would lose, and what a missing standby blocks. There are none if the
 * database has no standby and waits for none.
 */
export function evaluateReplication({
  standbys,
  synchronousStandbyNames: names,
  leastLag,
}: ReplicationReport): CheckResult[] {
  if (names !== '') return evaluateSynchronous(standbys, leastLag);
  if (standbys === 0) return [];
  const what = `replication is asynchronous: a failover would lose ${lossOf(standbys, leastLag)}`;
  const todo =
    'Set synchronous_mode in Patroni, or synchronous_standby_names in PostgreSQL (docs/cluster.md says what each costs).';
  const lagVisibilityAdvice =
    ' To see how much, name all servers in services.postgresql.host, or grant pg_read_all_stats to the role.';
  return [warning(what, leastLag === null ? `${todo}${lagVisibilityAdvice}` : todo)];
}

function evaluateSynchronous(standbys: number, leastLag: ReplicationLag | null): CheckResult[] {
  if (standbys === 0) {
    const todo = 'Bring a standby back, or empty synchronous_standby_names until there is one.';
    return [error('commits wait for a standby and none follows: every post is refused with 503', todo)];
  }
  const whom = standbys === 1 ? 'the standby' : `one of ${standbys} standbys`;
  const lagPhrase = leastLag === null ? '' : `, the best of which lacks ${lagText(leastLag)} now`;
  const okResult = ok(`commits wait for ${whom}${lagPhrase}: a failover loses nothing that was acknowledged`);
  if (standbys > 1) return [okResult];
  const todo = 'Add a second standby; with Patroni, synchronous_mode_strict: false lets writes go on without any.';
  return [okResult, warning('commits wait for the only standby: while it is away, posts are refused with 503', todo)];
}

function lossOf(standbys: number, leastLag: ReplicationLag | null): string {
  const whose = standbys === 1 ? 'the standby' : `the best of ${standbys} standbys`;
  if (leastLag === null) return `what ${whose} lacks at that moment`;
  return `what ${whose} lacks, now ${lagText(leastLag)}`;
}

function lagText({ bytes, seconds }: ReplicationLag): string {
  return `${formatBytes(bytes)} (${seconds.toFixed(1)} s)`;
}

/**
 * Warns of host names that lead to several servers: Klatch uses only the first one that accepts the connection, and it
 * may be a standby. An IPv4 and an IPv6 address count as one server.
 */
export async function evaluateHostNames(
  hosts: readonly string[],
  findAddresses: AddressLookup = (name) => lookup(name, { all: true }),
): Promise<CheckResult[]> {
  const names = [...new Set(hosts)].filter((host) => !host.startsWith('/') && isIP(host) === 0);
  const resultsOfNames = await Promise.all(
    names.map(async (name) => {
      // A name that does not resolve is reported by the check that connects to the database.
      const addresses = await findAddresses(name).catch(() => []);
      const count = Math.max(...[4, 6].map((family) => addresses.filter((each) => each.family === family).length));
      if (count < 2) return [];
      const what = `${name} leads to ${count} addresses, of which only one is asked: it may be a standby`;
      return [warning(what, 'Give each server a name of its own, and list them all in services.postgresql.host.')];
    }),
  );
  return resultsOfNames.flat();
}
