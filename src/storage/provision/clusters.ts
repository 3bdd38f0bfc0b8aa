import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** The folders in which Klatch looks for the PostgreSQL servers of this machine. */
export interface ClusterLocations {
  /**
   * The folder of the servers' Unix sockets. A user that may write to it can impersonate a database, so it must not be
   * a folder that all users share.
   */
  readonly socketDir: string;
  /** The folder of Debian's configurations, which are `<version>/<name>/postgresql.conf`. */
  readonly clustersDir: string;
}

export const SYSTEM_CLUSTER_LOCATIONS: ClusterLocations = {
  socketDir: '/var/run/postgresql',
  clustersDir: '/etc/postgresql',
};

/** A PostgreSQL server of this machine, running or not. */
export interface LocalCluster {
  /** Debian's name for the server, such as "15/main"; null: only its socket was found. */
  readonly name: string | null;
  readonly socketDir: string;
  readonly port: number;
  /** The owner of the server's socket; null: there is no socket, so the server does not run. */
  readonly socketOwnerUid: number | null;
  /** The server's pg_hba.conf, as its configuration files tell; null: it has no known files. */
  readonly hbaFile: string | null;
}

const SOCKET_NAME_PATTERN = /^\.s\.PGSQL\.(\d{1,5})$/;
/** The port of a server whose configuration names none. */
const DEFAULT_PORT = 5432;

/** The servers that are configured or have a socket, sorted by port. It only reads files, and does not connect. */
export function findClusters({ socketDir, clustersDir }: ClusterLocations): LocalCluster[] {
  const configured = readEntryNames(clustersDir).flatMap((version) =>
    readEntryNames(join(clustersDir, version)).flatMap((name) => readClusterOrNone(join(clustersDir, version, name))),
  );
  const known = new Set(configured.map((cluster) => join(cluster.socketDir, String(cluster.port))));
  const socketOnlyClusters = readEntryNames(socketDir).flatMap((name): LocalCluster[] => {
    const port = Number(SOCKET_NAME_PATTERN.exec(name)?.[1]);
    const socketOwnerUid = findSocketOwnerUid(socketDir, port);
    if (socketOwnerUid === null || known.has(join(socketDir, String(port)))) return [];
    return [{ name: null, socketDir, port, socketOwnerUid, hbaFile: null }];
  });
  return [...configured, ...socketOnlyClusters].sort((a, b) => a.port - b.port);
}

/** A server's name for people: "15/main on port 5432". */
export function clusterLabel({ name, port }: LocalCluster): string {
  return name === null ? `port ${port}` : `${name} on port ${port}`;
}

function readClusterOrNone(folder: string): LocalCluster[] {
  let confText: string;
  try {
    confText = readFileSync(join(folder, 'postgresql.conf'), 'utf8');
  } catch {
    // The file postgresql.conf is missing or inaccessible. A removed package leaves folders without it. If the file is
    // inaccessible, Klatch must not use the server.
    return [];
  }
  const port = Number(readConfSetting(confText, 'port') ?? DEFAULT_PORT);
  const socketDir =
    readConfSetting(confText, 'unix_socket_directories')?.split(',')[0]?.trim() || SYSTEM_CLUSTER_LOCATIONS.socketDir;
  const hbaFile = readConfSetting(confText, 'hba_file') ?? join(folder, 'pg_hba.conf');
  const name = folder.split('/').slice(-2).join('/');
  return [{ name, socketDir, port, socketOwnerUid: findSocketOwnerUid(socketDir, port), hbaFile }];
}

/** The value of a setting in the text of postgresql.conf. The last line with the setting wins, as for PostgreSQL. */
function readConfSetting(confText: string, name: string): string | undefined {
  const settingMatches = [
    ...confText.matchAll(new RegExp(`^[ \\t]*${name}(?:[ \\t]*=[ \\t]*|[ \\t]+)(?:'([^']*)'|([^\\s#]+))`, 'gim')),
  ];
  const [, quoted, plain] = settingMatches.at(-1) ?? [];
  return quoted ?? plain;
}

function findSocketOwnerUid(folder: string, port: number): number | null {
  if (!Number.isInteger(port) || port < 1 || port > 65_535) return null;
  try {
    const stat = statSync(join(folder, `.s.PGSQL.${port}`));
    return stat.isSocket() ? stat.uid : null;
  } catch {
    // The socket is missing or inaccessible: Klatch could not connect in either case.
    return null;
  }
}

function readEntryNames(folder: string): string[] {
  try {
    return readdirSync(folder).sort();
  } catch {
    // PostgreSQL is not installed, or the folder is inaccessible.
    return [];
  }
}
