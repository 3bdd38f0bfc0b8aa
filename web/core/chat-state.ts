import { signal } from '@preact/signals';
import { anything } from '../../client/core/decode.ts';
import { isTransient, ServerError } from '../../client/core/chat-error.ts';
import type { ChatEvent } from '../../client/core/events.ts';
import { LiveClient } from '../../client/core/live-client.ts';
import type { Change, Conversation, Message } from '../../client/core/shapes.ts';
import type { Api } from './api.ts';
import type { BrowserSession, SignedInAccount } from './browser-session.ts';
import { DraftAttachments } from './uploads/attachments.ts';
import { BrowserStore } from './browser-store.ts';
import { Drafts } from './drafts.ts';
import { DrawScheduler } from './draw-scheduler.ts';
import { MessagePages } from './message-pages.ts';
import { readNotification } from './live-notification.ts';
import { PeerPresence, peersIn } from './peer-presence.ts';
import { PendingDeletions } from './pending-deletions.ts';
import { ReadSender } from './read-sender.ts';
import { SendQueue, type QueuedMessage } from './send-queue.ts';
import type { PagePlace } from './place.ts';
import { Timeline } from './timeline.ts';
import { MAX_MEMBERS_WITH_TYPING, Typing } from './typing.ts';
import { byActivity, withListed, withMessage, withRead, type ConversationEntry } from './unread.ts';
import { webSocketConnect, type ConnectionProblem } from './websocket.ts';

/** The shortest time between two reads of the list of conversations, at any rate of new messages. */
const RELOAD_INTERVAL_MS = 1_000;
/** The longest wait for stored texts before the page follows changes: in some browsers IndexedDB never answers. */
const MAX_STORE_WAIT_MS = 2_000;

/** The state of a signed-in account: its conversations, the connection, and the texts that the person writes. */
export class ChatState {
  /** The account's conversations; null: the list was not read yet. */
  readonly conversations = signal<readonly ConversationEntry[] | null>(null);
  readonly connectionProblem = signal<ConnectionProblem | null>(null);
  /** Why the person's last action, or the last read of the list of conversations, failed; null: no failure to show. */
  readonly actionProblem = signal<string | null>(null);
  /** The last change of presence that the server reported. */
  readonly presence = signal<{ readonly account: number; readonly online: boolean } | null>(null);
  /**
   * The last possible change of a conversation's members, roles or description. `conversation` null: the name of an
   * account changed, which any conversation may show.
   */
  readonly groupChange = signal<{ readonly conversation: number | null } | null>(null);
  /** A counter that rises when the send queue or the set of conversations with a draft changes. */
  readonly writingVersion = signal(0);
  readonly deletions: PendingDeletions;
  readonly typing = new Typing({ sendTyping: (conversation) => void this.#sendTyping(conversation) });
  readonly peers: PeerPresence;
  /** Rises when a person chooses a message to see: the address may name that message already, and then stays. */
  readonly jumps = signal(0);
  readonly sendQueue: SendQueue;
  readonly drafts: Drafts;
  readonly attachments: DraftAttachments;
  readonly pages = new MessagePages();
  readonly live: LiveClient;
  readonly api: Api;
  readonly #account: { value: SignedInAccount };
  readonly #store: BrowserStore;
  readonly #entries = new Map<number, ConversationEntry>();
  readonly #reads: ReadSender;
  /** Conversations of which the server has lost changes, until the list of conversations is read again. */
  readonly #resetConversations = new Set<number>();
  /** The error of the last read of the list of conversations, as `actionProblem` shows it. */
  #listProblem: string | null = null;
  readonly #drawing = new DrawScheduler(() => this.#showEntries());
  /** Resolves when the unsent texts of the browser are restored. */
  #restored: Promise<unknown> = Promise.resolve();
  #timeline: Timeline | null = null;
  /** The conversation whose newest messages are fetched with the first list of conversations; null: none. */
  #firstConversation: number | null = null;
  #isListed = false;
  #isStopped = false;
  #reloadTimer: ReturnType<typeof setTimeout> | null = null;

  constructor(place: PagePlace, api: Api, { account, expiresAt }: BrowserSession) {
    this.#account = signal(account);
    this.api = api;
    this.#reads = new ReadSender((conversation, seq) => api.markRead(conversation, seq));
    // On a shared computer the next person must not find the drafts of this one.
    const store = new BrowserStore(place.base.pathname, { isPersistent: expiresAt === null });
    this.#store = store;
    const onChange = (): void => {
      this.writingVersion.value += 1;
    };
    this.drafts = new Drafts({ account: account.id, storeDraft: (draft) => store.keepDraft(draft), onChange });
    this.sendQueue = new SendQueue({
      account: account.id,
      send: async ({ conversation, text, files = [], clientId }) => {
        const message = await api.sendMessage({ conversation, text, files: files.map(({ id }) => id), clientId });
        const isFirst = message.seq === this.#entries.get(conversation)?.firstSeq;
        // Otherwise the live connection brings the messages before it first: without them its row would be empty.
        if (isFirst || this.pages.get(conversation, message.seq - 1) !== undefined) this.#show(conversation, message);
        return message.seq;
      },
      keep: (entry) => store.keepQueuedMessage(entry),
      remove: (clientId) => store.removeQueuedMessage(clientId),
      isShown: (id, seq) => this.#isShown(id, seq),
      onChange,
    });
    this.peers = new PeerPresence((conversation) => api.onlineAccounts(conversation));
    this.deletions = new PendingDeletions({
      remove: async (conversation, seq, options) => {
        await this.#act(async () => this.#show(conversation, await api.deleteMessage(conversation, seq, options)));
      },
    });
    this.attachments = new DraftAttachments({
      upload: (file, options) => api.uploadFile(file, options),
      remove: (id) => api.removeFile(id),
      readLimits: () => api.fileLimits(),
    });
    this.live = new LiveClient({
      connect: webSocketConnect(place.base),
      token: null,
      follow: { resumeRevByConversation: new Map(), startWithoutResumeRev: 'now', onlyConversations: null },
      listener: (event) => this.#onEvent(event),
    });
  }

  get account(): SignedInAccount {
    return this.#account.value;
  }

  /** Takes a new nick and name of the signed-in account. */
  rename({ nick, name }: Pick<SignedInAccount, 'nick' | 'name'>): void {
    this.#account.value = { ...this.account, nick, name };
  }

  /** `firstConversation`: the conversation that the page will show at its end; null: none, or not known yet. */
  start(firstConversation: number | null): void {
    this.#firstConversation = firstConversation;
    const restored = this.#store.readAll().then(({ drafts, unsent }) => {
      if (this.#isStopped) return;
      this.drafts.restore(drafts);
      this.sendQueue.restore(unsent);
      this.#forgetReceived(unsent);
    });
    this.#restored = Promise.race([restored, new Promise((resolve) => setTimeout(resolve, MAX_STORE_WAIT_MS))]);
    this.live.start();
  }

  /** Removes from the send queue restored messages that the page has already received: IndexedDB may answer late. */
  #forgetReceived(restored: readonly QueuedMessage[]): void {
    for (const conversation of new Set(restored.map((entry) => entry.conversation)))
      for (const message of this.pages.allOf(conversation)) this.#tellSendQueue(conversation, message);
  }

  /** `isSignOut`: deletes drafts and unsent messages from the browser; otherwise they stay in the browser. */
  async stop({ isSignOut }: { readonly isSignOut: boolean }): Promise<void> {
    this.#isStopped = true;
    this.sendQueue.stop();
    this.deletions.stop();
    this.typing.clear();
    this.attachments.stop();
    this.#timeline?.close();
    if (this.#reloadTimer !== null) clearTimeout(this.#reloadTimer);
    if (!isSignOut) this.drafts.storeNow();
    const stopped = this.live.stop();
    await (isSignOut ? this.#store.deleteAll() : this.#store.close());
    await stopped;
  }

  /** Whether a sign-out loses something that the account has written, in any tab of this browser. */
  async hasUnsentTexts(): Promise<boolean> {
    const hasTexts = this.drafts.hasAnyText || this.sendQueue.hasUnsentMessages;
    return hasTexts || (await this.#store.hasTextsOf(this.account.id));
  }

  /** The entry as the page shows it: `#entries` is newer until the next draw. */
  entryOf(conversation: number): ConversationEntry | undefined {
    return this.conversations.value?.find(({ info }) => info.id === conversation);
  }

  /** Opens the timeline of a conversation, and closes the timeline that was open. */
  open(conversation: number): Timeline {
    if (this.#timeline?.conversation === conversation) return this.#timeline;
    this.#timeline?.close();
    this.#timeline = new Timeline({
      conversation,
      pages: this.pages,
      fetchHistory: (after, limit) => this.api.history(conversation, after, limit),
      onMessages: (messages) => {
        for (const message of messages) {
          // The server may have stored this one after it answered the list of conversations.
          this.#update(conversation, (entry) => withMessage(entry, message, this.account));
          this.#tellSendQueue(conversation, message);
        }
      },
      onFirstSeq: (firstSeq) =>
        this.#update(conversation, (entry) => ({ ...entry, firstSeq: Math.max(firstSeq, entry.firstSeq) })),
    });
    void this.peers.fetchPresence(peersIn(this.#entries.values(), conversation));
    return this.#timeline;
  }

  /**
   * Tells the server whether the page is visible: if all sessions of an account are in the background, its devices get
   * pushes.
   */
  tellForeground(isForeground: boolean): Promise<void> {
    // Without a connection the call fails. `#onEvent` calls this method again on the next connection.
    return this.#tell('live.foreground', { foreground: isForeground });
  }

  async #sendTyping(conversation: number): Promise<void> {
    const members = this.#entries.get(conversation)?.info.members ?? 0;
    if (members <= MAX_MEMBERS_WITH_TYPING) await this.#tell('messages.typing', { conversation });
  }

  /** Calls an operation and ignores its failure. */
  async #tell(operation: string, input: object): Promise<void> {
    await this.live.call(operation, input, { decode: anything, failsWhenDisconnected: true }).catch(() => {});
  }

  async markRead(conversation: number, seq: number): Promise<void> {
    const entry = this.#entries.get(conversation);
    if (entry === undefined || seq <= entry.readSeq) return;
    const hadMentions = entry.unreadMentionCount > 0;
    this.#update(conversation, (each) => withRead(each, seq));
    await this.#sendReadSeq(conversation, seq, hadMentions);
  }

  async #sendReadSeq(conversation: number, seq: number, hadMentions: boolean): Promise<void> {
    // Only the server knows which mentions were read, so the page reads the list of conversations again.
    if ((await this.#reads.send(conversation, seq)) && hadMentions) this.#reloadSoon();
  }

  /** Sends a text with its attached files. False: too many messages wait, or a file is not stored yet. */
  sendMessage(conversation: number, text: string): boolean {
    if (!this.sendQueue.hasCapacity) return false;
    const files = this.attachments.take(conversation);
    return files !== null && this.sendQueue.add(conversation, text, files);
  }

  /** Edits a message. Resolves to false if the edit failed; `actionProblem` then says why. */
  edit(conversation: number, seq: number, text: string): Promise<boolean> {
    return this.#act(async () => this.#show(conversation, await this.api.editMessage(conversation, seq, text)));
  }

  /** Resolves to false if the work failed; `actionProblem` then says why. */
  async #act(work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      this.actionProblem.value = null;
      return true;
    } catch (error) {
      this.actionProblem.value = (error as Error).message;
      return false;
    }
  }

  #onEvent(event: ChatEvent): Promise<void> | void {
    if (event.type === 'change') this.#onChange(event.conversation, event.change);
    else if (event.type === 'disconnected') {
      const { reason, retryInMs } = event;
      this.typing.clear();
      this.peers.clear();
      this.connectionProblem.value = { reason, retryAt: Date.now() + retryInMs };
    } else if (event.type === 'connected') {
      // The live connection follows when this promise has resolved. The server may have stored an unsent text already:
      // the page would show it twice until the server answers the repeated request.
      return this.#restored.then(() => this.#onConnected());
    } else if (event.type === 'reset') this.#onReset(event.conversation, event.rev);
    else if (event.type === 'left') this.#onLeft(event.conversation);
    else if (event.type === 'said') this.#onNotification(event.method, event.params);
    else this.#reloadSoon();
  }

  #onConnected(): void {
    if (this.#isStopped) return;
    this.connectionProblem.value = null;
    this.sendQueue.wake();
    this.attachments.retryInterrupted();
    this.#timeline?.wake();
    for (const [conversation, seq] of this.#reads.unsentSeqs) void this.#sendReadSeq(conversation, seq, true);
    void this.tellForeground(!document.hidden);
  }

  #onChange(conversation: number, { rev, message, notice }: Change): void {
    if (message !== undefined) this.#show(conversation, message);
    if (notice === undefined) return;
    if (this.#timeline?.conversation === conversation) this.#timeline.addNotice(rev, notice);
    else if (this.pages.hasPageOfNotice(conversation, notice)) this.pages.putNotice(conversation, rev, notice);
    this.groupChange.value = { conversation };
    // The page takes titles, roles and numbers of members only from the list of conversations.
    this.#reloadSoon();
  }

  #show(conversation: number, message: Message): void {
    const isOpen = this.#timeline?.conversation === conversation;
    // The messages of other conversations are fetched when the person opens them.
    if (isOpen || this.pages.hasPageOf(conversation, message.seq)) this.pages.put(conversation, [message]);
    const isNew = message.edited_at === undefined && message.deleted !== true;
    if (isNew && message.sender.kind !== 'webhook') this.typing.onMessage(conversation, message.sender.id);
    this.#update(conversation, (entry) => withMessage(entry, message, this.account));
    this.#tellSendQueue(conversation, message);
    if (!this.#entries.has(conversation) || this.#resetConversations.has(conversation)) this.#reloadSoon();
  }

  /** Whether the page shows a message that is stored, or will fetch it when its conversation is opened. */
  #isShown(conversation: number, seq: number): boolean {
    const entry = this.entryOf(conversation);
    if (entry === undefined || seq > entry.lastSeq) return false;
    return this.#timeline?.conversation !== conversation || this.pages.canShow(conversation, seq, entry.firstSeq);
  }

  #tellSendQueue(conversation: number, message: Message): void {
    const { kind, id } = message.sender;
    if (kind === 'user' && id === this.account.id) this.sendQueue.onOwnMessage(conversation, message);
  }

  #onReset(conversation: number, rev: number): void {
    this.pages.forgetAfterRev(conversation, rev);
    // After lost changes the entry's counts may be too high. It stays until the list is read: its pane may be open.
    this.#resetConversations.add(conversation);
    this.#reloadSoon();
  }

  #onLeft(conversation: number): void {
    this.#entries.delete(conversation);
    this.pages.forget(conversation);
    this.#drawing.scheduleDraw();
  }

  #onNotification(method: string, params: unknown): void {
    const notification = readNotification(method, params);
    if (notification?.kind === 'typing')
      this.typing.onTypingNotification(notification.conversation, notification.account);
    else if (notification?.kind === 'presence') {
      this.presence.value = { account: notification.account, online: notification.online };
      this.peers.onNotification(notification.account, notification.online);
    } else if (notification?.kind === 'read') {
      this.#update(notification.conversation, (entry) => withRead(entry, notification.seq));
      if ((this.#entries.get(notification.conversation)?.unreadMentionCount ?? 0) > 0) this.#reloadSoon();
    } else {
      if (method === 'account.changed') this.groupChange.value = { conversation: null };
      if (notification?.account.id === this.account.id) this.rename(notification.account);
      this.#reloadSoon();
    }
  }

  #update(conversation: number, change: (entry: ConversationEntry) => ConversationEntry): void {
    const entry = this.#entries.get(conversation);
    if (entry !== undefined) this.#entries.set(conversation, change(entry));
    this.#drawing.scheduleDraw();
  }

  #showEntries(): void {
    if (!this.#isListed || this.#isStopped) return;
    this.conversations.value = [...this.#entries.values()].sort(byActivity);
    this.#timeline?.changed();
    this.sendQueue.forgetShownEntries();
  }

  #reloadSoon(): void {
    this.#reloadTimer ??= setTimeout(
      () => {
        this.#reloadTimer = null;
        void this.reloadConversations();
      },
      this.#isListed ? RELOAD_INTERVAL_MS : 0,
    );
  }

  /** Reads the list of conversations again. */
  async reloadConversations(): Promise<void> {
    if (this.#isStopped) return;
    // Saves a round trip. Before the live connection follows, the page would miss changes of fetched messages.
    if (this.#firstConversation !== null) void this.open(this.#firstConversation).fetchNewest();
    this.#firstConversation = null;
    try {
      const listed = await this.api.conversations();
      if (this.#isStopped) return;
      const ids = new Set(listed.map(({ id }) => id));
      for (const id of this.#entries.keys()) if (!ids.has(id)) this.#entries.delete(id);
      for (const info of listed) this.#takeListed(info);
      this.#isListed = true;
      if (this.actionProblem.value === this.#listProblem) this.actionProblem.value = null;
      this.#drawing.scheduleDraw();
      void this.peers.fetchPresence(peersIn(this.#entries.values(), this.#timeline?.conversation ?? null));
    } catch (error) {
      // The session has ended: the live connection reports that.
      if (error instanceof ServerError && error.code === 'unauthenticated') return;
      this.#listProblem = (error as Error).message;
      this.actionProblem.value = this.#listProblem;
      if (isTransient(error)) this.#reloadSoon();
    }
  }

  #takeListed(info: Conversation): void {
    const isReset = this.#resetConversations.delete(info.id);
    this.#entries.set(info.id, withListed(isReset ? undefined : this.#entries.get(info.id), info));
    if (isReset && this.#timeline?.conversation === info.id) this.#timeline.refetch();
  }
}
