import { setTimeout as wait } from 'node:timers/promises';
import { discoverServerAddress } from '../../client/core/address.ts';
import { objectWithAtLeast, integer } from '../../client/core/decode.ts';
import type { ChatEvent } from '../../client/core/events.ts';
import { LiveClient } from '../../client/core/live-client.ts';
import type { Message } from '../../client/core/shapes.ts';
import { connectFunctionFor } from '../../client/node/connect-to.ts';
import { signUpByLink } from '../../test/client/core/process-people.ts';
import type { CleanUp } from '../clean-up.ts';
import { postOf, textOf } from '../recorder.ts';
import type { Stage } from '../stage.ts';
import { until } from '../until.ts';

const CLIENTS_PER_NODE = 2;
/** Pause between two edits. */
const EDIT_GAP_MS = 200;
const EDIT_TIMEOUT_MS = 15_000;
const EDIT_TEXT = / \(edit (\d+)\)$/;
/** The event that the hooks of a cluster fault request. */
const EDIT_EVENT = 'message.updated';
const decodeEdited = objectWithAtLeast({ rev: integer });

/** The state of one conversation at one client. */
class HeardConversation {
  /** By seq: the post that the message belongs to. */
  readonly posts = new Map<number, number>();
  /** All received posts, also those whose seq the server later gave to another message (after a loss). */
  readonly allPosts = new Set<number>();
  /** By seq: the rev of the last state of the message that the client received. */
  readonly #revs = new Map<number, number>();
  /** By seq: the number of the last edit that the client received. */
  readonly edits = new Map<number, number>();
  firstSeq = Number.POSITIVE_INFINITY;
  newestSeq = 0;
  lastRev = 0;

  hear({ seq, text }: Message, rev: number): void {
    const post = postOf(text);
    if (post === null) return;
    this.posts.set(seq, post);
    this.#revs.set(seq, rev);
    this.allPosts.add(post);
    this.firstSeq = Math.min(this.firstSeq, seq);
    this.newestSeq = Math.max(this.newestSeq, seq);
    const edit = Number(EDIT_TEXT.exec(text)?.[1] ?? 0);
    if (edit > (this.edits.get(seq) ?? 0)) this.edits.set(seq, edit);
  }

  /** Forgets the changes after this rev, which the server has lost. */
  reset(rev: number): void {
    for (const [seq, knownRev] of this.#revs) {
      if (knownRev <= rev) continue;
      this.posts.delete(seq);
      this.#revs.delete(seq);
    }
    this.newestSeq = [...this.posts.keys()].reduce((newest, seq) => Math.max(newest, seq), 0);
    this.lastRev = rev;
  }
}

/**
 * Live clients that follow all groups of a stage and reconnect after each failure. The clients edit messages in turn.
 */
export class LiveClients {
  /** Violations, in words. */
  readonly violations = new Set<string>();
  /** How often the server notified a client that changes it had received were lost. */
  resets = 0;
  readonly #stage: Stage;
  readonly #clients: { readonly client: LiveClient; readonly heard: Map<number, HeardConversation> }[] = [];
  /** By conversation and seq: the number of the last edit that the server acknowledged. */
  readonly #edited = new Map<string, number>();
  /** Group and rev of each edit that the server acknowledged. */
  readonly #editedRevs: { readonly group: number; readonly rev: number }[] = [];
  #lastEdit = 0;
  #isEditing = false;
  #editing: Promise<void> = Promise.resolve();

  private constructor(stage: Stage) {
    this.#stage = stage;
  }

  /** Resolves when all clients follow all groups. */
  static async connect(stage: Stage, cleanUp: CleanUp): Promise<LiveClients> {
    const liveClients = new LiveClients(stage);
    await cleanUp.add('live clients', () => liveClients.stop());
    for (const [node, server] of stage.servers.entries()) {
      const address = await discoverServerAddress(`${server.url.replace('http', 'ws')}/v1/live`);
      for (let n = 0; n < CLIENTS_PER_NODE; n += 1) {
        const nick = `client-${node}-${n}`;
        const token = await signUpByLink(server, nick, address);
        for (const { id } of stage.groups) {
          await server.operate('groups.add-member', { group: id, user: nick, role: 'admin' });
        }
        liveClients.#follow(connectFunctionFor(address), token);
      }
    }
    const isHeard = (): boolean => liveClients.#clients.every(({ heard }) => heard.size === stage.groups.length);
    await until('all live clients follow', isHeard);
    liveClients.startEditing();
    return liveClients;
  }

  /** The number of edits that the server acknowledged. */
  get edits(): number {
    return this.#editedRevs.length;
  }

  /** The number of acknowledged edits whose event a hook that requests events did not get, summed over the hooks. */
  get lostEvents(): number {
    const asking = this.#stage.hooks.filter(({ kind }) => kind.events?.includes(EDIT_EVENT));
    return asking
      .map(({ record, group }) => this.#editedRevs.filter((each) => each.group === group && !record.hasEvent(each.rev)))
      .reduce((sum, missing) => sum + missing.length, 0);
  }

  startEditing(): void {
    this.#isEditing = true;
    this.#editing = this.#edit();
  }

  /**
   * Resolves when each client has received the newest acknowledged post of each group. Before that, a client may not
   * know yet that messages were lost, and would edit another message that has the seq of a lost one now.
   */
  async untilCurrent(): Promise<void> {
    const newest = this.#stage.load.acknowledged.map((posts) => [...posts.keys()].at(-1));
    await until('live clients are current', () =>
      newest.every((post, group) => post === undefined || this.clientsWithout(group, post) === 0),
    );
  }

  /** Ends the editing; resolves when no edit is in progress. */
  async stopEditing(): Promise<void> {
    this.#isEditing = false;
    await this.#editing;
  }

  /** Resolves when the clients have received everything that the servers acknowledged, or after `timeoutMs`. */
  async catchUp(timeoutMs: number): Promise<void> {
    await this.stopEditing();
    const heads = this.#stage.load.heads();
    const isThere = (): boolean =>
      this.lostEvents === 0 &&
      this.#lostEdits === 0 &&
      this.#clients.every(({ heard }) =>
        this.#stage.groups.every(({ id }, group) => heard.get(id)?.posts.has(heads[group]!) === true),
      );
    await until('live clients have caught up', isThere, timeoutMs).catch(() => {});
  }

  /** The number of acknowledged messages and edits that a client never received, summed over the clients. */
  get lost(): number {
    let lost = 0;
    for (const { heard } of this.#clients) {
      for (const [group, { id }] of this.#stage.groups.entries()) {
        const { posts, firstSeq } = heard.get(id)!;
        for (const [post, seq] of this.#stage.load.acknowledged[group]!) {
          if (seq >= firstSeq && posts.get(seq) !== post) lost += 1;
        }
      }
    }
    return lost + this.#lostEdits;
  }

  get #lostEdits(): number {
    let lost = 0;
    for (const { heard } of this.#clients) {
      for (const [key, edit] of this.#edited) {
        const [conversation, seq] = key.split(':').map(Number) as [number, number];
        if ((heard.get(conversation)!.edits.get(seq) ?? 0) < edit) lost += 1;
      }
    }
    return lost;
  }

  /** The number of clients that never received this post of the group, under any seq. */
  clientsWithout(group: number, post: number): number {
    const { id } = this.#stage.groups[group]!;
    return this.#clients.filter(({ heard }) => !heard.get(id)!.allPosts.has(post)).length;
  }

  async stop(): Promise<void> {
    this.#isEditing = false;
    await Promise.all(this.#clients.map(({ client }) => client.stop()));
    await this.#editing;
  }

  #follow(connect: ReturnType<typeof connectFunctionFor>, token: string): void {
    const heard = new Map<number, HeardConversation>();
    const client: LiveClient = new LiveClient({
      connect,
      token,
      follow: { resumeRevByConversation: new Map(), startWithoutResumeRev: 'now', onlyConversations: null },
      listener: (event) => this.#hear(event, heard, client),
    });
    this.#clients.push({ client, heard });
    client.start();
    void client.ended.then((error) => {
      if (error !== null) this.violations.add(`a live client ended: ${error.message}`);
    });
  }

  #hear(event: ChatEvent, heard: Map<number, HeardConversation>, client: LiveClient): void {
    if (event.type === 'reset') {
      this.resets += 1;
      heard.get(event.conversation)?.reset(event.rev);
    }
    if (event.type !== 'change') return;
    const { conversation: id, change } = event;
    let conversation = heard.get(id);
    if (conversation === undefined) heard.set(id, (conversation = new HeardConversation()));
    if (change.rev <= conversation.lastRev) this.violations.add('a live client heard a change behind a later one');
    conversation.lastRev = change.rev;
    if (change.message === undefined) return;
    const { seq, text } = change.message;
    const epoch = client.epochByConversation.get(id) ?? 0;
    this.#stage.recorder.textByRev.note({ group: id, epoch, rev: change.rev }, `${seq} ${text}`);
    conversation.hear(change.message, change.rev);
  }

  /**
   * Edits the newest messages, one after the other. It does not repeat a failed edit: nobody relies on an
   * unacknowledged one.
   */
  async #edit(): Promise<void> {
    while (this.#isEditing) {
      await wait(EDIT_GAP_MS);
      const edit = ++this.#lastEdit;
      const { client, heard } = this.#clients[edit % this.#clients.length]!;
      const group = edit % this.#stage.groups.length;
      const { id } = this.#stage.groups[group]!;
      const { posts, newestSeq: seq } = heard.get(id)!;
      const post = posts.get(seq);
      if (post === undefined) continue;
      const params = { conversation: id, seq, text: `${textOf(post)} (edit ${edit})` };
      await client
        .call('messages.edit', params, { decode: decodeEdited, timeoutMs: EDIT_TIMEOUT_MS })
        .then(({ rev }) => {
          this.#edited.set(`${id}:${seq}`, edit);
          this.#editedRevs.push({ group, rev });
        })
        .catch(() => {});
    }
  }
}
