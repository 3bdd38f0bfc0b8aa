/**
 * A receiver in memory, written from docs/reverse-webhooks.md alone: its rules, each with the part of the page.
 *
 * 1. "Verifying": the signature covers `webhook-id`, `webhook-timestamp` and the raw body, with full stops between
 *    them. A delivery is genuine if one entry `v1` is valid and the timestamp is at most five minutes off. Others are
 *    refused.
 * 2. "Order and batches": with `batch` above 1 the body is an array, else one event. The receiver reads both.
 * 3. "What a receiver does": of the states of a message the one with the highest `message.rev` is the newest, whichever
 *    delivery contains it, a repeat too. The receiver ignores a lower one.
 * 4. "What arrives", "What a receiver does", with `strict`: the receiver has already handled a message whose `seq` does
 *    not exceed the last handled one, and likewise an event, by its `data.rev`.
 * 5. The same with `none`: the receiver recognises handled items by their `webhook-id`. A batch has an id of its own
 *    and may repeat with other boundaries, so the receiver stores the id that each item has alone.
 * 6. "Epochs": numbers are compared with their epochs, the epoch first, and `message.id` identifies a message.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import {
  compareEpochNumbers,
  epochSuffix,
  eventKey,
  type DeliveredItem,
  type DeliveryKey,
  type EpochNumber,
  type MessageKey,
  type MessageState,
} from './history.ts';

const TIMESTAMP_TOLERANCE_S = 300;

interface EventBody {
  readonly type: DeliveredItem['type'];
  readonly data: {
    readonly rev?: number;
    readonly epoch?: number;
    readonly group: { readonly id: number };
    readonly message: {
      readonly id: string;
      readonly seq: number;
      readonly epoch?: number;
      readonly rev: number;
      readonly rev_epoch?: number;
      readonly text: string;
      readonly deleted?: boolean;
      readonly attachments: readonly unknown[];
    };
  };
}

/** The content of a request, genuine or not. */
interface ReceivedRequest {
  readonly isGenuine: boolean;
  readonly isArray: boolean;
  readonly items: readonly DeliveredItem[];
}

export class ModelReceiver {
  readonly messages = new Map<MessageKey, MessageState>();
  /** The items that the receiver handled, each once, in that order. */
  readonly handled: DeliveryKey[] = [];
  readonly #secrets: string[];
  readonly #handledKeys = new Set<DeliveryKey>();
  #lastSeq: EpochNumber = { epoch: 0, number: 0 };
  #lastRev: EpochNumber = { epoch: 0, number: 0 };
  #comparesNumbers: boolean;

  constructor(secret: string, order: 'strict' | 'none') {
    this.#secrets = [secret];
    this.#comparesNumbers = order === 'strict';
  }

  /**
   * Adds the new secret of a rotation and keeps the old one: deliveries in flight have only the signature of the old
   * secret.
   */
  addSecret(secret: string): void {
    this.#secrets.push(secret);
  }

  /**
   * Makes the receiver identify handled items by their ids, since its hook changed to `none`: from then on a retried
   * message may come after later ones.
   */
  keepIds(): void {
    this.#comparesNumbers = false;
  }

  read(headers: IncomingHttpHeaders, raw: string): ReceivedRequest {
    const body = JSON.parse(raw) as EventBody | readonly EventBody[];
    const bodies = Array.isArray(body) ? (body as readonly EventBody[]) : [body as EventBody];
    return { isGenuine: this.#isGenuine(headers, raw), isArray: Array.isArray(body), items: bodies.map(itemOf) };
  }

  /** Applies an accepted request. */
  accept({ isGenuine, items }: ReceivedRequest): void {
    if (!isGenuine) return;
    for (const item of items) {
      this.#keepNewest(item);
      if (this.#wasHandled(item)) continue;
      this.handled.push(item.key);
      this.#handledKeys.add(item.key);
      if (item.eventRev === null) this.#lastSeq = later(this.#lastSeq, item.seq);
      else this.#lastRev = later(this.#lastRev, item.eventRev);
    }
  }

  #keepNewest({ message, rev, text, deleted }: DeliveredItem): void {
    const known = this.messages.get(message);
    if (known === undefined || compareEpochNumbers(known.rev, rev) < 0)
      this.messages.set(message, { rev, text, deleted });
  }

  #wasHandled({ key, seq, eventRev }: DeliveredItem): boolean {
    if (!this.#comparesNumbers) return this.#handledKeys.has(key);
    if (eventRev === null) return compareEpochNumbers(seq, this.#lastSeq) <= 0;
    return compareEpochNumbers(eventRev, this.#lastRev) <= 0;
  }

  #isGenuine(headers: IncomingHttpHeaders, raw: string): boolean {
    const id = String(headers['webhook-id']);
    const timestamp = String(headers['webhook-timestamp']);
    if (!(Math.abs(Date.now() / 1000 - Number(timestamp)) <= TIMESTAMP_TOLERANCE_S)) return false;
    const entries = String(headers['webhook-signature']).split(' ');
    return this.#secrets.some((secret) => {
      const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
      const expected = Buffer.from(
        `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${raw}`).digest('base64')}`,
      );
      return entries
        .map((entry) => Buffer.from(entry))
        .some((entry) => entry.length === expected.length && timingSafeEqual(entry, expected));
    });
  }
}

function itemOf({ type, data }: EventBody): DeliveredItem {
  const { message } = data;
  const seq = { number: message.seq, epoch: message.epoch ?? 0 };
  const eventRev = type === 'message.created' ? null : { number: data.rev ?? Number.NaN, epoch: data.epoch ?? 0 };
  // The part of the id after the group is `seq` with its epoch. The checker reports any other form.
  const key = message.id.slice(message.id.indexOf(':') + 1);
  return {
    type,
    key: eventRev === null ? `${seq.number}${epochSuffix(seq.epoch)}` : eventKey(eventRev),
    group: data.group.id,
    message: key,
    seq,
    rev: { number: message.rev, epoch: message.rev_epoch ?? 0 },
    eventRev,
    text: message.text,
    deleted: message.deleted === true,
    attachments: message.attachments.length,
  };
}

const later = (a: EpochNumber, b: EpochNumber): EpochNumber => (compareEpochNumbers(a, b) < 0 ? b : a);
