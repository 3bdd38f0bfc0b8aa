import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/ports.ts';
import { programEnv } from './program-env.ts';

export const ALERTMANAGER = '/usr/bin/prometheus-alertmanager';

/** In a cluster, the second instance waits this long for the notification of the first one before it notifies. */
const PEER_TIMEOUT = '1s';
/** At its start, an instance looks this long for its peers before it notifies. */
const SETTLE_TIMEOUT = '1s';

/** An alert in the form that Prometheus sends. Each Alertmanager of a pair gets it with the same times. */
export interface FiredAlert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly startsAt: string;
  /** If this time is in the future, the alert fires; if it is past, the alert is resolved. */
  readonly endsAt: string;
}

/** Debian's Alertmanager as a process with a folder of its own. */
export class Alertmanager {
  readonly address: string;
  readonly clusterAddress: string;
  readonly #folder: string;
  readonly #child: ChildProcess;

  private constructor(place: { address: string; clusterAddress: string; folder: string }, child: ChildProcess) {
    this.address = place.address;
    this.clusterAddress = place.clusterAddress;
    this.#folder = place.folder;
    this.#child = child;
  }

  /**
   * Starts an instance; resolves when it is ready. It joins the cluster of its `peers`, if they are given; the first
   * instance of a cluster gets an empty list.
   */
  static async start(
    configuration: string,
    { peers }: { readonly peers?: readonly Alertmanager[] } = {},
  ): Promise<Alertmanager> {
    const folder = await mkdtemp(join(tmpdir(), 'klatch-alertmanager-'));
    const file = join(folder, 'alertmanager.yml');
    await writeFile(file, configuration);
    const address = `127.0.0.1:${await freePort()}`;
    const clusterAddress = `127.0.0.1:${await freePort()}`;
    const args = [
      `--config.file=${file}`,
      `--storage.path=${folder}`,
      `--web.listen-address=${address}`,
      '--web.external-url=http://alerts.example.org',
      `--cluster.listen-address=${peers === undefined ? '' : clusterAddress}`,
      `--cluster.peer-timeout=${PEER_TIMEOUT}`,
      `--cluster.settle-timeout=${SETTLE_TIMEOUT}`,
      ...(peers ?? []).map((peer) => `--cluster.peer=${peer.clusterAddress}`),
    ];
    const child = spawn(ALERTMANAGER, args, { stdio: 'ignore', env: programEnv() });
    const alertmanager = new Alertmanager({ address, clusterAddress, folder }, child);
    await eventually(
      () => alertmanager.#isReady(),
      (isReady) => isReady,
    );
    return alertmanager;
  }

  async #isReady(): Promise<boolean> {
    if (this.#child.exitCode !== null) throw new Error(`Alertmanager ended with ${this.#child.exitCode}`);
    return fetch(`http://${this.address}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  }

  /** The number of members of the instance's cluster, itself included. */
  async members(): Promise<number> {
    return (await this.#metric('cluster_members')).get('') ?? 0;
  }

  /** Posts alerts, as Prometheus does. */
  async put(alerts: readonly FiredAlert[]): Promise<void> {
    const answer = await fetch(`http://${this.address}/api/v2/alerts`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(alerts),
    });
    if (!answer.ok) throw new Error(`Alertmanager refused alerts: ${answer.status} ${await answer.text()}`);
  }

  /** The instance's counters of notifications, by integration. A counter that never counted is missing. */
  notifications(
    metric: 'notifications_total' | 'notifications_failed_total' | 'notification_requests_failed_total',
  ): Promise<ReadonlyMap<string, number>> {
    return this.#metric(metric);
  }

  async #metric(name: string): Promise<ReadonlyMap<string, number>> {
    const lines = (await (await fetch(`http://${this.address}/metrics`)).text()).split('\n');
    const pattern = new RegExp(`^alertmanager_${name}(?:\\{integration="(\\w+)"\\})? (\\S+)$`);
    const matches = lines.map((line) => pattern.exec(line)).filter((match) => match !== null);
    return new Map(matches.map(([, integration = '', count]) => [integration, Number(count)]));
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const ended = once(this.#child, 'exit');
      this.#child.kill();
      await ended;
    }
    await rm(this.#folder, { recursive: true, force: true });
  }
}
