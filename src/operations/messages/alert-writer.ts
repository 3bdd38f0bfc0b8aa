import { KlatchError } from '../../errors.ts';
import { applyAlertUpdate, type AlertChange, type PostedAlertState, type AlertUpdate } from '../../model/alert.ts';
import { messageId, type ConversationId } from '../../model/ids.ts';
import type { MessageCard } from '../../model/message-card.ts';
import { readAlert, type AlertKey, type AlertWrite, type StoredAlert } from '../../storage/messages/alerts.ts';
import { AlertConflictError } from '../../storage/messages/message-log.ts';
import { findKeyedPost } from '../../storage/messages/keyed-posts.ts';
import type { PostResult } from '../../storage/messages/write-posts.ts';
import { translateLostRead } from '../core/database-errors.ts';
import { retryWhileDatabaseIsAway } from '../core/database-wait.ts';
import type { Services } from '../core/services.ts';
import { postOrExplainRefusal, type PresentedToken, type WebhookMessage } from './post-webhook.ts';

export type MessageContent = Pick<WebhookMessage, 'text' | 'cardsJson'>;

/**
 * The contents that show a change of an alert: the text and cards of the message that shows the alert, and those of a
 * follow-up.
 */
export interface AlertTexts extends MessageContent {
  /** The content of a second message, which is posted after the first one is edited; null: there is only the edit. */
  readonly followUp: MessageContent | null;
  /**
   * True: the text is posted as a new message, which shows the alert from now on. The message that showed the alert
   * before is not edited.
   */
  readonly isNewMessage?: boolean;
}

/** The message that shows an alert. */
export interface AlertMessage {
  readonly text: string;
  readonly cards: readonly MessageCard[];
  /** True: the alert fires, and no message about it was posted for an hour. */
  readonly isReminderDue: boolean;
}

/**
 * A post that reports the state of an alert. Its `key` is the idempotency key. `source` and `alertKey` identify the
 * alert in its group.
 */
export interface AlertPost extends Omit<WebhookMessage, keyof MessageContent | 'attachments' | 'alert'> {
  readonly source: string;
  readonly alertKey: string;
  readonly update: AlertUpdate;
  /** True: the report is written only if the alert is stored as firing. */
  readonly onlyAfterFiring?: boolean;
  /**
   * Writes the texts of a change; called again for each try. Stored text is not updated as time passes, so the texts
   * hold moments and no elapsed times. Equal states must have equal texts, so that a repeated report is no edit.
   * `shown` is null if a new message will show the alert. If only a reminder is due, `before` and `after` of the change
   * are the same object.
   */
  readonly writeTexts: (change: AlertChange, shown: AlertMessage | null) => AlertTexts | Promise<AlertTexts>;
}

/** At most this many tries for a post. A try fails if another node changed the alert after this node had read it. */
const MAX_CONFLICT_TRIES = 50;
/** At most this many posts of this process wait for another post of the same alert, or for the database. */
const MAX_UNANSWERED_POSTS = 1_000;

/**
 * Posts the reports of alerts. A new incident is a new message; later reports edit that message and may add another
 * one. The reports of one alert are handled one after the other in this process. If another node changes the alert
 * meanwhile, the report is decided again.
 */
export class AlertWriter {
  readonly #services: Services;
  readonly #lastTurnByAlert = new Map<string, Promise<void>>();
  #unansweredPosts = 0;

  constructor(services: Services) {
    this.#services = services;
  }

  /**
   * Resolves, after the commit, to the id of the message that shows the alert. If `onlyAfterFiring` is set and the
   * alert does not fire, it resolves to what `#readFirstAnswer` finds. If the message that showed the alert was
   * deleted, a change is posted as a new message. Throws what `postMessage` throws, and `overloaded`.
   */
  async post(access: PresentedToken, alertPost: AlertPost): Promise<string | null> {
    const { conversationId } = access.integration;
    const { source, alertKey } = alertPost;
    const alert = { conversationId, source, key: alertKey };
    if (this.#unansweredPosts >= MAX_UNANSWERED_POSTS) throw new KlatchError('overloaded');
    this.#unansweredPosts += 1;
    const deadlineMs = performance.now() + this.#services.config.limits.intakeTimeoutMs;
    try {
      return await this.#runInTurn(JSON.stringify(alert), () =>
        this.#postRetryingConflicts(access, alert, alertPost, deadlineMs),
      );
    } finally {
      this.#unansweredPosts -= 1;
    }
  }

  /** Runs `work` after all earlier work for the same alert: of concurrent decisions, all but one would be in vain. */
  async #runInTurn<Result>(alertKeyJson: string, work: () => Promise<Result>): Promise<Result> {
    const previousTurn = this.#lastTurnByAlert.get(alertKeyJson);
    const turn = Promise.withResolvers<void>();
    this.#lastTurnByAlert.set(alertKeyJson, turn.promise);
    try {
      await previousTurn;
      return await work();
    } finally {
      turn.resolve();
      if (this.#lastTurnByAlert.get(alertKeyJson) === turn.promise) this.#lastTurnByAlert.delete(alertKeyJson);
    }
  }

  async #postRetryingConflicts(
    access: PresentedToken,
    alert: AlertKey,
    alertPost: AlertPost,
    deadlineMs: number,
  ): Promise<string | null> {
    for (let tries = 1; tries <= MAX_CONFLICT_TRIES && performance.now() < deadlineMs; tries += 1) {
      const stored = await this.#read(alert, deadlineMs);
      if (alertPost.onlyAfterFiring === true && stored?.state !== 'firing')
        return this.#readFirstAnswer(alert.conversationId, alertPost);
      const message = await decideMessage(alertPost, stored);
      try {
        const posted = await postOrExplainRefusal(this.#services, access, message);
        this.#announceEdit(alert.conversationId, posted);
        return messageId(alert.conversationId, posted.seq, posted.logEpoch);
      } catch (error) {
        if (!(error instanceof AlertConflictError)) {
          if (error instanceof KlatchError && error.code === 'outcome_unknown')
            this.#announceEdit(alert.conversationId, null);
          throw error;
        }
      }
    }
    const sentence = 'Too many posts change this alert at the same time; this one was not posted, please repeat it';
    throw new KlatchError('overloaded', { sentence });
  }

  /**
   * The id of the message of the first post with this idempotency key, for a repeated report that an alert ended. Null:
   * the post has no key, or nothing was posted with it. Throws `idempotency_key_reused` if the first post had another
   * body.
   */
  async #readFirstAnswer(conversationId: ConversationId, { key, bodyHash }: AlertPost): Promise<string | null> {
    if (key === null) return null;
    const firstPost = await translateLostRead(
      this.#services.database.general.run((sql) => findKeyedPost(sql, { conversationId, key })),
    );
    if (firstPost === null) return null;
    if (firstPost.bodyHash !== bodyHash) throw new KlatchError('idempotency_key_reused');
    return messageId(conversationId, firstPost.seq, firstPost.logEpoch);
  }

  /** Reads the alert; retries until `deadlineMs` while the database is unavailable. */
  async #read(alert: AlertKey, deadlineMs: number): Promise<StoredAlert | null> {
    return retryWhileDatabaseIsAway(
      () => this.#services.database.general.run((sql) => readAlert(sql, alert)),
      deadlineMs,
    );
  }

  /**
   * Announces the edit of a message; the message log itself announces new messages. `posted` is null if it is unknown
   * what was written.
   */
  #announceEdit(conversationId: ConversationId, posted: Exclude<PostResult, { outcome: 'refused' }> | null): void {
    const { bus } = this.#services;
    const written = posted?.outcome === 'new' ? posted.alert : undefined;
    // The edit of a repeated post is announced too: the answer to the first post may have been lost, and its edit not
    // announced.
    if (written === undefined || written.isEdited) bus.publish('nonMessageChangesCommitted', [conversationId]);
    if (written === undefined || (written.isEdited && written.wantsEvents))
      bus.publish('hookEventsCommitted', [conversationId]);
  }
}

/** The message to write for a report, decided from the stored row of its alert. */
async function decideMessage(alertPost: AlertPost, stored: StoredAlert | null): Promise<WebhookMessage> {
  const { source, alertKey, update, onlyAfterFiring: _, writeTexts, ...rest } = alertPost;
  const decidedFrom = stored === null ? null : { version: stored.version, seq: stored.seq };
  const alert = { source, key: alertKey, decidedFrom };
  const buildMessage = (
    { text, cardsJson }: MessageContent,
    alertWrite: Omit<AlertWrite, keyof typeof alert>,
  ): WebhookMessage => ({ ...rest, text, cardsJson, attachments: [], alert: { ...alert, ...alertWrite } });
  const nothing = { editedText: null, editedCardsJson: null, newMessage: 'none', state: null } as const;
  const change = applyAlertUpdate(stored, update) ?? reminderOf(stored);
  if (change === null) return buildMessage(NO_CONTENT, nothing);
  const state = change.after;
  const buildShowingMessage = (content: MessageContent): WebhookMessage =>
    buildMessage(content, { ...nothing, newMessage: 'shows-alert', state });
  if (stored === null || change.isNewIncident || stored.shownText === null)
    return buildShowingMessage(await writeTexts(change, null));
  const isReminderDue = stored.isReminderDue && state.state === 'firing';
  const shown = { text: stored.shownText, cards: stored.shownCards, isReminderDue };
  const { followUp, isNewMessage, ...edited } = await writeTexts(change, shown);
  if (isNewMessage === true) return buildShowingMessage(edited);
  const edit = { editedText: edited.text, editedCardsJson: edited.cardsJson };
  return buildMessage(followUp ?? NO_CONTENT, { ...edit, newMessage: followUp === null ? 'none' : 'follow-up', state });
}

/** The content of a write that posts no message. */
const NO_CONTENT: MessageContent = { text: '', cardsJson: null };

/**
 * The change for a reminder, if one is due: the alert still fires, and no message about it was posted for an hour.
 * Null: none is due. Senders repeat firing alerts so that nobody forgets them.
 */
function reminderOf(stored: StoredAlert | null): AlertChange | null {
  if (stored?.state !== 'firing' || !stored.isReminderDue || stored.shownText === null) return null;
  const { state, since, senderAlerts } = stored;
  const firingState: PostedAlertState = { state, since, senderAlerts };
  return { before: firingState, after: firingState, isNewIncident: false };
}
