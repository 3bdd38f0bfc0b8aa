import { postJson, readJson } from '../test/support/server.ts';
import { ServerProcess, type ProcessOptions } from '../test/support/server-process.ts';
import type { CleanUp } from './clean-up.ts';
import { Load, type LoadOptions, type PostTarget } from './load.ts';
import { Receiver } from './receiver.ts';
import { Recorder, type HookRecord } from './recorder.ts';
import { until } from './until.ts';

/** The settings of a hook that decide the order and the size of its deliveries. */
export interface HookKind {
  readonly order: 'strict' | 'none';
  readonly batch: number;
  /** The events that the hook requests; by default none. */
  readonly events?: readonly string[];
}

/** The hooks that each group has in addition to two plain strict ones. The variable HOOKS=strict omits them. */
const FURTHER_KINDS: readonly HookKind[] = [
  { order: 'strict', batch: 10 },
  { order: 'none', batch: 1 },
];
const STRICT: HookKind = { order: 'strict', batch: 1 };

export interface StageOptions {
  /** HOCON for each server: its database, and the settings that the fault needs. */
  readonly settings?: string;
  /** The number of servers on the one database; 1 by default. */
  readonly nodes?: number;
  /** The settings of one node (HOCON), after `settings`. */
  readonly nodeSettings?: (node: number) => string;
  readonly load?: Partial<LoadOptions>;
  /** Further hooks that each group gets. */
  readonly hookKinds?: readonly HookKind[];
  readonly process?: ProcessOptions;
  /** Starts the receiver that the fault strikes; by default one like `healthy`. */
  readonly struck?: (recorder: Recorder) => Promise<Receiver>;
  /** The host in the URLs of struck hooks, instead of the receiver's address. */
  readonly struckHost?: string;
  /** Prepares a server before it has hooks to deliver to. */
  readonly whenStarted?: (server: ServerProcess) => Promise<void>;
}

interface Hook {
  readonly record: HookRecord;
  readonly kind: HookKind;
  readonly group: number;
  readonly isStruck: boolean;
  readonly checkUrl: string;
}

const GROUPS = 4;
const CLIENTS = 8;
/**
 * Pause of each client after an answer. Together they post at most about 800 times a second, which two cores can
 * forward and record.
 */
const GAP_MS = 8;
const SETTINGS = `
  limits { token-rate = 10000, hook-registrations-per-minute = 1000 }
  delivery { retry = [50ms, 100ms, 200ms], headers-timeout = 15s, connect-timeout = 5s }
  log.level = warn`;

/**
 * The servers, receivers and callers of one fault: four groups with hooks at both receivers, and a steady load of
 * posts.
 */
export class Stage {
  readonly recorder: Recorder;
  readonly servers: ServerProcess[] = [];
  readonly groups: PostTarget[] = [];
  readonly hooks: Hook[] = [];
  readonly struck: Receiver;
  readonly healthy: Receiver;
  readonly load: Load;
  /**
   * The time when the fault of the current run ended, and the greatest acknowledged `seq` of each group at that time.
   */
  #ended: { readonly at: number; readonly heads: readonly number[] } | null = null;

  private constructor(parts: { recorder: Recorder; struck: Receiver; healthy: Receiver; load: Load }) {
    this.recorder = parts.recorder;
    this.struck = parts.struck;
    this.healthy = parts.healthy;
    this.load = parts.load;
  }

  static async start(cleanUp: CleanUp, options: StageOptions = {}): Promise<Stage> {
    const recorder = new Recorder();
    const struck = await (options.struck?.(recorder) ?? Receiver.start(recorder));
    await cleanUp.add('receiver', () => struck.down());
    const healthy = await Receiver.start(recorder);
    await cleanUp.add('receiver', () => healthy.down());
    const servers: ServerProcess[] = [];
    for (let n = 0; n < (options.nodes ?? 1); n += 1) {
      const own = options.nodeSettings?.(n) ?? '';
      const server = await ServerProcess.create(`${SETTINGS}\n${options.settings ?? ''}\n${own}`, options.process);
      await cleanUp.add('server', () => server.discard());
      servers.push(server);
      await server.start();
      await options.whenStarted?.(server);
    }
    const targets: PostTarget[] = [];
    for (let group = 0; group < GROUPS; group += 1) {
      const { id, token } = await servers[0]!.createGroup(`Group ${group}`);
      targets.push({ id, webhooks: servers.map((server) => `${server.url}/v1/webhooks/${token}`) });
    }
    const load = new Load(targets, { clients: CLIENTS, gapMs: GAP_MS, ...options.load });
    await cleanUp.add('load', () => load.abort());
    const stage = new Stage({ recorder, struck, healthy, load });
    stage.servers.push(...servers);
    stage.groups.push(...targets);
    for (const [group, target] of targets.entries()) await stage.#register(group, target, options);
    load.start();
    return stage;
  }

  get server(): ServerProcess {
    return this.servers[0]!;
  }

  /** Hooks of the receiver that the fault strikes. */
  get struckHooks(): Hook[] {
    return this.hooks.filter((hook) => hook.isStruck);
  }

  /** Resolves when each hook has accepted this many further messages. */
  goOn(messages: number): Promise<void> {
    return goOn(this.hooks, messages);
  }

  /** Resolves when each hook that the fault does not strike has accepted this many further messages. */
  healthyGoOn(messages: number): Promise<void> {
    return goOn(
      this.hooks.filter((hook) => !hook.isStruck),
      messages,
    );
  }

  /** Pauses the callers until every hook has every post. */
  async catchUpWithoutPosts(): Promise<void> {
    this.load.pause();
    try {
      await until('all lanes have caught up', () => {
        const heads = this.load.heads();
        return this.hooks.every(({ record, group }) => record.through >= heads[group]!);
      });
    } finally {
      this.load.resume();
    }
  }

  /** Resolves when each struck hook has had this many further deliveries, accepted or refused. */
  async struckAreAnswered(deliveries: number): Promise<void> {
    const records = this.struckHooks.map((hook) => hook.record);
    const due = records.map((record) => record.answered + deliveries);
    await until('struck hooks had deliveries', () => records.every((record, index) => record.answered >= due[index]!));
  }

  /** Resolves when the health of each struck hook shows that it is failing, with this category as its last error. */
  async struckFailBy(category: string): Promise<void> {
    for (const { checkUrl } of this.struckHooks) {
      await until(`a hook fails by ${category}`, async () => {
        const { body } = await readJson(await fetch(checkUrl));
        return body.state === 'failing' && body.last_error?.category === category;
      });
    }
  }

  /** Marks the moment when nothing is broken any more: the times of the recovery count from it. */
  faultEnds(): void {
    this.#ended = { at: performance.now(), heads: this.load.heads() };
    for (const { record } of this.hooks) record.mark();
  }

  /** Resolves when every hook has accepted a new message, and everything from before the end of the fault. */
  async recover(): Promise<Recovery> {
    if (this.#ended === null) throw new Error('the fault of this run did not say when it ended');
    const { at, heads } = this.#ended;
    this.#ended = null;
    await until('all lanes flow again', () =>
      this.hooks.every(({ record, group }) => record.firstTakenAt !== null && record.through >= heads[group]!),
    );
    const allMs = performance.now() - at;
    const firsts = this.hooks.map(({ record }) => record.firstTakenAt! - at);
    return { firstMs: Math.max(...firsts), allMs };
  }

  async #register(group: number, { webhooks }: PostTarget, options: StageOptions): Promise<void> {
    const further = process.env['HOOKS'] === 'strict' ? [] : FURTHER_KINDS;
    for (const [index, kind] of [STRICT, STRICT, ...further, ...(options.hookKinds ?? [])].entries()) {
      const isStruck = index !== 1;
      const path = `/${group}/${index}`;
      const receiver = isStruck ? this.struck : this.healthy;
      const url = isStruck ? receiver.url(path, options.struckHost) : receiver.url(path);
      const answer = await postJson(`${webhooks[0]}/reverse`, { url, ...kind });
      if (answer.status !== 201) throw new Error(`a hook could not be registered: ${JSON.stringify(answer.body)}`);
      const record = this.recorder.expect(path, kind.order === 'strict');
      this.hooks.push({ record, kind, group, isStruck, checkUrl: `${webhooks[0]}/reverse/${answer.body.id}` });
    }
  }
}

async function goOn(hooks: readonly Hook[], messages: number): Promise<void> {
  const records = hooks.map((hook) => hook.record);
  const due = records.map((record) => record.taken + messages);
  await until('messages flow', () => records.every((record, index) => record.taken >= due[index]!));
}

/** Two times of a recovery, both from the end of the fault. */
export interface Recovery {
  /** Until each hook had accepted a new message: the time of the hook that took longest. */
  readonly firstMs: number;
  /** Until everything had arrived that was posted before the end of the fault. */
  readonly allMs: number;
}
