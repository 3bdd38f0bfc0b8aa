import { makeAlertUpdate } from './core/alert-update.ts';
import type { CallerFormat } from './core/caller-format.ts';
import { card, messageForm, type AlertUpdate, type Card, type MessageForm, type Mood } from './core/message-form.ts';
import { momentOf, periodText, sinceText } from './core/moments.ts';
import { firstStringOf, isObject, numberOf, objectOf, stringOf, type JsonObject } from './core/values.ts';

/** The webhook of Uptime Kuma in its own format: as JSON, or in the field `data` of an HTTP form. */
export const uptimeKuma: CallerFormat = {
  name: 'uptime-kuma',
  matches: ({ body }) => 'heartbeat' in body && 'monitor' in body && typeof body['msg'] === 'string',
  read: ({ body }) => {
    const monitor = objectOf(body['monitor']);
    return isObject(body['heartbeat']) ? readHeartbeat(body['heartbeat'], monitor, body) : readNotice(body, monitor);
  },
};

interface MonitorStatus {
  readonly text: string;
  readonly mood: Mood;
  readonly state: AlertUpdate['state'] | null;
}

/**
 * What to show for a heartbeat; its `status` is the index in this list. Maintenance, and a check that is repeated, do
 * not change the alert.
 */
const STATUSES: readonly MonitorStatus[] = [
  { text: 'is down', mood: 'danger', state: 'firing' },
  { text: 'is up', mood: 'good', state: 'resolved' },
  { text: 'is pending', mood: 'warning', state: null },
  { text: 'is under maintenance', mood: 'info', state: null },
];

function readHeartbeat(heartbeat: JsonObject, monitor: JsonObject, body: JsonObject): MessageForm {
  const status = STATUSES[numberOf(heartbeat['status']) ?? -1];
  if (status === undefined) return readNotice(body, monitor);
  const id = firstStringOf(monitor['id'], heartbeat['monitorID']);
  const cardsSince = (sinceMs: number | null): Card[] => [
    heartbeatCard({ status, id, since: sinceMs }, heartbeat, monitor),
  ];
  const since = stringOf(heartbeat['time']);
  const isDown = status.state === 'firing';
  return messageForm({
    cards: cardsSince(momentOf(since)),
    alert:
      status.state === null
        ? null
        : makeAlertUpdate(alertKeyOf(id, monitor), status.state, [], isDown ? { since } : {}),
    // While a monitor stays down, its posts have the time of the last check. The known start of the alert is the time
    // of the first failure.
    cardsForKnownAlert: isDown ? (known) => cardsSince(known.since.getTime()) : null,
  });
}

/**
 * The key of a monitor's alert. Each installation of Uptime Kuma numbers its monitors from 1, and a group may get posts
 * of two installations. So the key also has the monitor's name and address.
 */
function alertKeyOf(id: string, monitor: JsonObject): string {
  if (id === '') return '';
  return [id, stringOf(monitor['name']), monitoredUrl(monitor), hostOf(monitor)]
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .join(' ');
}

function heartbeatCard(
  {
    status,
    id,
    since: sinceMs,
  }: { readonly status: MonitorStatus; readonly id: string; readonly since: number | null },
  heartbeat: JsonObject,
  monitor: JsonObject,
): Card {
  const reason = stringOf(heartbeat['msg']).trim();
  const isUp = status.state === 'resolved';
  const details = [
    reason === 'N/A' ? '' : reason,
    isUp && numberOf(heartbeat['ping']) !== null ? `${stringOf(heartbeat['ping'])} ms` : '',
    isUp ? downText(momentOf(stringOf(heartbeat['lastDownTime'])), sinceMs) : sinceText(sinceMs),
  ];
  return card({
    title: `${firstStringOf(monitor['name'], monitor['hostname'], `Monitor ${id}`)} ${status.text}`,
    url: monitoredUrl(monitor),
    mood: status.mood,
    text: details.filter((detail) => detail !== '').join(' · '),
    fields: [{ name: 'Host', value: hostOf(monitor), isShort: true }].filter(({ value }) => value !== ''),
  });
}

/**
 * A text that says from when to when a monitor was down. Uptime Kuma sends the beginning only since version 2.1;
 * without it, the text says since when the monitor is up.
 */
function downText(downSinceMs: number | null, upSinceMs: number | null): string {
  return downSinceMs === null ? sinceText(upSinceMs) : `was down ${periodText(downSinceMs, upSinceMs)}`;
}

/**
 * The URL that a monitor checks; empty if it has none. A monitor of another kind than HTTP has only the beginning of a
 * URL, such as `https://`.
 */
function monitoredUrl(monitor: JsonObject): string {
  const url = stringOf(monitor['url']).trim();
  return /^https?:\/\/$/.test(url) ? '' : url;
}

function hostOf(monitor: JsonObject): string {
  const [host, port] = [stringOf(monitor['hostname']).trim(), stringOf(monitor['port'])];
  return host === '' || port === '' ? host : `${host}:${port}`;
}

const EXPIRY = /will expire in -?\d+ days\s*$/;

/**
 * Reads a post without a heartbeat: a test, or a notice that a certificate or a domain expires soon. Mostly it has no
 * monitor either.
 */
function readNotice(body: JsonObject, monitor: JsonObject): MessageForm {
  const message = stringOf(body['msg']).trim();
  return messageForm({
    cards: [
      card({
        title: stringOf(monitor['name']),
        url: monitoredUrl(monitor),
        mood: EXPIRY.test(message.slice(-100)) ? 'warning' : null,
        text: message,
      }),
    ],
  });
}
