import { alertState, makeAlertUpdate, singleAlertsOf } from './alert-update.ts';
import { moodOfLevel } from './levels.ts';
import {
  card,
  type AlertUpdate,
  type Card,
  type Field,
  type KnownAlert,
  type Link,
  type Mood,
} from './message-form.ts';
import { momentOf, periodText, sinceText } from './moments.ts';
import { clipped, safeLink, storableText } from './plain-text.ts';
import { emojiOfMood } from './render-text.ts';
import { entriesOf, firstStringOf, numberOf, objectOf, objectsOf, stringOf, type JsonObject } from './values.ts';

/**
 * The most alerts of a request that are read. Further ones are neither shown nor counted, and their fingerprints are
 * ignored. An alert with content takes at least 240 bytes of the body.
 */
const MAX_ALERTS = 5_000;
const MAX_SHOWN_ALERTS = 10;
const MAX_LABELS = 50;
const MAX_SHOWN_LABELS = 8;
const MAX_VALUE_LENGTH = 200;
const MAX_SUMMARY_LENGTH = 1_000;

/** A group of alerts, as Alertmanager and Grafana send it. */
interface AlertGroup {
  /**
   * Makes a card with a title such as `HighCPU (2 firing, 1 resolved)`, and a line for each alert. `onlyFingerprints`:
   * the fingerprints of the alerts that get a line; absent: all.
   */
  readonly cardOf: (known?: KnownStates, onlyFingerprints?: ReadonlySet<string>) => Card;
  /** The state of the one alert of Klatch that represents the group; null: the group has no key. */
  readonly alert: AlertUpdate | null;
}

/** How to read those parts of an alert that each program writes in its own way. */
interface AlertReader {
  /** URLs of pages that show the alert, the most useful one first. Only the first valid one is used. */
  readonly urls: (alert: JsonObject) => readonly string[];
  /** The measured values, which are shown for an alert without a summary. */
  readonly measuredValues: (alert: JsonObject) => string;
}

export function readAlertGroup(body: JsonObject, reader: AlertReader): AlertGroup {
  const all = objectsOf(body['alerts'], MAX_ALERTS);
  const isFiring = all.length === 0 ? body['status'] !== 'resolved' : all.some(isReportedFiring);
  return {
    cardOf: (known = NOTHING_KNOWN, onlyFingerprints) =>
      groupCard(body, { alerts: all, reader, known, onlyFingerprints }),
    alert: makeAlertUpdate(stringOf(body['groupKey']), isFiring ? 'firing' : 'resolved', singleAlertsOf(all)),
  };
}

type KnownStates = Pick<KnownAlert, 'isFiringByFingerprint'>;
const NOTHING_KNOWN: KnownStates = { isFiringByFingerprint: new Map() };
const isReportedFiring = (alert: JsonObject): boolean => alertState(alert) === 'firing';
const fingerprintOf = (alert: JsonObject): string => storableText(stringOf(alert['fingerprint']));

interface GroupCardOptions {
  readonly alerts: readonly JsonObject[];
  readonly reader: AlertReader;
  readonly known: KnownStates;
  readonly onlyFingerprints: ReadonlySet<string> | undefined;
}

function groupCard(body: JsonObject, { alerts: all, reader, known, onlyFingerprints: only }: GroupCardOptions): Card {
  const { isFiringByFingerprint } = known;
  const fires = (alert: JsonObject): boolean =>
    isFiringByFingerprint.get(fingerprintOf(alert)) ?? isReportedFiring(alert);
  const reportedFingerprints = new Set(all.map(fingerprintOf));
  const unreported = [...isFiringByFingerprint].filter(([fingerprint]) => !reportedFingerprints.has(fingerprint));
  const firing = all.filter(fires);
  const unreportedFiringCount = unreported.filter(([, isFiring]) => isFiring).length;
  const firingCount = firing.length + unreportedFiringCount;
  const resolvedCount = all.length + unreported.length - firingCount;
  const isFiring = firingCount + resolvedCount === 0 ? body['status'] !== 'resolved' : firingCount > 0;
  const headingParts = headingPartsOf(body, all);
  const sorted = [...firing, ...all.filter((alert) => !fires(alert))].filter(
    (alert) => only === undefined || only.has(fingerprintOf(alert)),
  );
  const shownAlerts = sorted
    .slice(0, MAX_SHOWN_ALERTS)
    .map((alert) => readAlert(alert, { heading: headingParts, isFiring: fires(alert) }, reader));
  // `truncatedAlerts` are those that the sender left out, `unreportedFiringCount` those known from earlier requests.
  // They may be They may be the same alerts, so the larger number counts.
  const truncatedCount = Math.max(Math.trunc(numberOf(body['truncatedAlerts']) ?? 0), unreportedFiringCount);
  const hiddenCount = (only === undefined ? truncatedCount : 0) + sorted.length - shownAlerts.length;
  const moods = (isFiring ? shownAlerts.slice(0, firing.length) : shownAlerts).map(({ mood }) => mood);
  const mood = worstOf(moods, isFiring);
  const title = `${headingParts.join(' · ') || 'Alerts'} ${countText(firingCount, resolvedCount, isFiring)}`;
  return card({ title, mood, ...cardParts(shownAlerts, hiddenCount) });
}

/** The parts of one alert that a message shows. */
interface ShownAlert {
  readonly mood: Mood;
  /** The alert's name; empty if the card's title has it. */
  readonly name: string;
  readonly summary: string;
  readonly severity: string;
  readonly labels: readonly string[];
  readonly timeText: string;
  readonly links: readonly Link[];
}

function readAlert(
  alert: JsonObject,
  { heading, isFiring }: { readonly heading: readonly string[]; readonly isFiring: boolean },
  reader: AlertReader,
): ShownAlert {
  const [labels, annotations] = [objectOf(alert['labels']), objectOf(alert['annotations'])];
  const summary = firstStringOf(
    annotations['summary'],
    annotations['message'],
    annotations['description'],
    isFiring ? reader.measuredValues(alert) : '',
  );
  const name = clipped(stringOf(labels['alertname']).trim(), MAX_VALUE_LENGTH);
  const severity = stringOf(labels['severity']);
  const runbook = safeLink(firstStringOf(annotations['runbook_url'], annotations['runbook']));
  const url =
    reader
      .urls(alert)
      .map(safeLink)
      .find((each) => each !== '') ?? '';
  const [start, end] = [momentOf(stringOf(alert['startsAt'])), momentOf(stringOf(alert['endsAt']))];
  return {
    mood: isFiring ? firingMood(severity) : 'good',
    name: heading.includes(name) ? '' : name,
    summary: clipped(summary.trim(), MAX_SUMMARY_LENGTH),
    severity: isFiring ? clipped(severity, MAX_VALUE_LENGTH) : '',
    labels: labelTexts(labels, clipped(summary, MAX_SUMMARY_LENGTH)).filter((label) => !heading.includes(label)),
    timeText: momentText({ isFiring, isReportedFiring: isReportedFiring(alert) }, start, end),
    links: [
      { label: '', url },
      { label: 'Runbook', url: runbook },
    ].filter((link) => link.url !== ''),
  };
}

/**
 * The time of an alert, such as `since 10:02 UTC` or `10:02 to 10:20 UTC`. Empty if this request reports the alert as
 * firing, but it is known to be resolved: then the time of its end is not known.
 */
function momentText(
  { isFiring, isReportedFiring }: { readonly isFiring: boolean; readonly isReportedFiring: boolean },
  startMs: number | null,
  endMs: number | null,
): string {
  if (isFiring) return sinceText(startMs);
  return isReportedFiring ? '' : periodText(startMs, endMs);
}

/**
 * Labels that a message leaves out. It shows the name and the severity in other places, and Grafana's folder is of no
 * use to readers.
 */
const SILENT_LABELS = ['alertname', 'severity', 'grafana_folder'];

/** The labels as texts such as `instance=web-1`, without those whose value the summary contains. */
function labelTexts(labels: JsonObject, summary: string): string[] {
  const labelPairs: string[] = [];
  for (const [name, found] of entriesOf(labels, MAX_LABELS)) {
    const value = clipped(stringOf(found).trim(), MAX_VALUE_LENGTH);
    const isInSummary = value.length > 2 && summary.includes(value);
    if (value === '' || isInSummary || name.startsWith('__') || SILENT_LABELS.includes(name)) continue;
    labelPairs.push(clipped(`${name}=${value}`, MAX_VALUE_LENGTH));
  }
  return labelPairs.slice(0, MAX_SHOWN_LABELS);
}

function firingMood(severity: string): Mood {
  const mood = moodOfLevel(severity);
  return mood === 'info' || mood === 'warning' ? mood : 'danger';
}

function worstOf(moods: readonly Mood[], isFiring: boolean): Mood {
  if (!isFiring) return 'good';
  const order: readonly Mood[] = ['danger', 'warning', 'info'];
  return order.find((mood) => moods.includes(mood)) ?? 'danger';
}

/** The parts of the heading: the name that all alerts have, or else the labels by which they are grouped. */
function headingPartsOf(body: JsonObject, alerts: readonly JsonObject[]): readonly string[] {
  const [group, common] = [objectOf(body['groupLabels']), objectOf(body['commonLabels'])];
  const soleLabels = alerts.length === 1 ? objectOf(alerts[0]!['labels']) : {};
  const name = firstStringOf(group['alertname'], common['alertname'], soleLabels['alertname']).trim();
  return name === '' ? labelTexts(group, '') : [clipped(name, MAX_VALUE_LENGTH)];
}

function countText(firing: number, resolved: number, isFiring: boolean): string {
  if (firing + resolved === 0) return isFiring ? 'firing' : 'resolved';
  if (!isFiring) return resolved === 1 ? 'resolved' : `resolved (${resolved} alerts)`;
  return resolved === 0 ? `(${firing} firing)` : `(${firing} firing, ${resolved} resolved)`;
}

/**
 * The text, fields and links of a card. A single alert becomes the text. Of several alerts, the common parts become the
 * text, and each alert becomes a field.
 */
function cardParts(shown: readonly ShownAlert[], hiddenCount: number): Partial<Card> {
  const [first] = shown;
  if (first === undefined) return { footer: remainderText(hiddenCount) };
  if (shown.length === 1)
    return { text: alertText(first, NOTHING_COMMON), links: first.links, footer: remainderText(hiddenCount) };
  const common = commonParts(shown);
  const isMixed = shown.some(({ mood }) => mood !== first.mood);
  const fields = shown.map((alert): Field => {
    const text = alertText(alert, common) || 'An alert without labels';
    const lines = [isMixed ? `${emojiOfMood(alert.mood)} ${text}` : text];
    if (common.links.length === 0)
      lines.push(...alert.links.map(({ label, url }) => (label === '' ? url : `${label}: ${url}`)));
    return { name: '', value: lines.join('\n'), isShort: false };
  });
  const more: Field = { name: '', value: remainderText(hiddenCount), isShort: false };
  return { text: alertText(common, NOTHING_COMMON), fields: [...fields, more], links: common.links };
}

const remainderText = (count: number): string => (count > 0 ? `… and ${count} more` : '');

type AlertParts = Omit<ShownAlert, 'mood'>;
const NOTHING_COMMON: AlertParts = { name: '', summary: '', severity: '', labels: [], timeText: '', links: [] };

/** Those parts that are equal in all shown alerts. */
function commonParts(shown: readonly ShownAlert[]): AlertParts {
  const first = shown[0]!;
  const isCommon = (textOf: (alert: ShownAlert) => string): boolean =>
    shown.every((alert) => textOf(alert) === textOf(first));
  const linksOf = ({ links }: ShownAlert): string => links.map(({ url }) => url).join('\n');
  return {
    name: '',
    summary: isCommon(({ summary }) => summary) ? first.summary : '',
    severity: isCommon(({ severity }) => severity) ? first.severity : '',
    labels: first.labels.filter((label) => shown.every(({ labels }) => labels.includes(label))),
    timeText: '',
    links: isCommon(linksOf) ? first.links : [],
  };
}

/**
 * The text of an alert in one line, without the parts in `common`. If the summary has several lines, the details come
 * in a line below it.
 */
function alertText(alert: AlertParts, common: AlertParts): string {
  const summary = alert.summary === common.summary ? '' : alert.summary;
  const details = [
    ...alert.labels.filter((label) => !common.labels.includes(label)),
    alert.severity === common.severity ? '' : alert.severity,
    alert.timeText,
  ];
  const head = joined(': ', [alert.name, summary]);
  return joined(head.includes('\n') ? '\n' : ' · ', [head, joined(' · ', details)]);
}

function joined(separator: string, parts: readonly string[]): string {
  return parts.filter((part) => part !== '').join(separator);
}
