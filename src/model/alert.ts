export type AlertStatus = 'firing' | 'resolved';

/**
 * One of the alerts that a sender reports under one key. An alert that fires again counts as another sender's alert,
 * with its own start.
 */
export interface SenderAlert {
  readonly fingerprint: string;
  readonly startsAt: Date;
  readonly state: AlertStatus;
}

/** The state of an alert, as the server stores it. */
export interface PostedAlertState {
  readonly state: AlertStatus;
  /** The time at which the alert began to fire. */
  readonly since: Date;
  /** The sender's own alerts, in the order of their first reports; empty if the sender does not distinguish any. */
  readonly senderAlerts: readonly SenderAlert[];
}

/** A post's report about an alert. */
export interface AlertUpdate {
  /** The state of all the sender's alerts under this key together. */
  readonly state: AlertStatus;
  readonly senderAlerts: readonly SenderAlert[];
  /**
   * When the alert began, as the sender says, or else when the report was received. It counts only if no sender's alert
   * is known, whose start would count.
   */
  readonly fallbackStartedAt: Date;
}

/** The change of an alert that an update makes. */
export interface AlertChange {
  readonly before: PostedAlertState | null;
  readonly after: PostedAlertState;
  /**
   * True: the server did not know the alert, or the alert was resolved and fires again. A new message then shows the
   * alert.
   */
  readonly isNewIncident: boolean;
}

/** The maximum number of sender's alerts that are stored with one alert. */
export const MAX_SENDER_ALERTS = 500;

/**
 * The change that an update makes; null: none. Updates may come twice and out of order. An update changes nothing if
 * `before` contains each of its sender's alerts in the same or a later state. An update without sender's alerts counts
 * as the newest.
 */
export function applyAlertUpdate(before: PostedAlertState | null, update: AlertUpdate): AlertChange | null {
  const knownAlerts = before?.senderAlerts ?? [];
  const reported = limitSenderAlerts(update.senderAlerts);
  const isKnownOrOutdated = createKnownOrOutdatedCheck(knownAlerts);
  if (reported.length > 0 && reported.every(isKnownOrOutdated)) return null;
  const reportedChanges = reported.filter((alert) => !isKnownOrOutdated(alert));
  const senderAlerts = mergeSenderAlerts(knownAlerts, { reported, reportedChanges, state: update.state });
  const state = reported.length === 0 ? update.state : senderAlerts.some(isFiring) ? 'firing' : 'resolved';
  const isNewIncident = before === null || (before.state === 'resolved' && state === 'firing');
  const since = isNewIncident ? incidentStart(senderAlerts, reported, update.fallbackStartedAt) : before.since;
  return { before, after: { state, since, senderAlerts }, isNewIncident };
}

const isFiring = ({ state }: SenderAlert): boolean => state === 'firing';
const senderAlertIdOf = ({ fingerprint, startsAt }: SenderAlert): string => `${startsAt.getTime()} ${fingerprint}`;

/**
 * At most MAX_SENDER_ALERTS of a report's alerts, firing ones first. The same alerts always give the same selection, so
 * that a repeated report is recognized.
 */
function limitSenderAlerts(alerts: readonly SenderAlert[]): readonly SenderAlert[] {
  if (alerts.length <= MAX_SENDER_ALERTS) return alerts;
  const rank = (alert: SenderAlert): number => (isFiring(alert) ? 0 : 1);
  const compare = (a: SenderAlert, b: SenderAlert): number =>
    rank(a) - rank(b) ||
    a.startsAt.getTime() - b.startsAt.getTime() ||
    Number(a.fingerprint > b.fingerprint) - Number(a.fingerprint < b.fingerprint);
  return alerts.toSorted(compare).slice(0, MAX_SENDER_ALERTS);
}

/** Creates a function that tells whether `known` contains a reported alert already, in the same or a later state. */
function createKnownOrOutdatedCheck(known: readonly SenderAlert[]): (alert: SenderAlert) => boolean {
  const byFingerprint = Map.groupBy(known, ({ fingerprint }) => fingerprint);
  return (alert) => {
    const entriesWithFingerprint = byFingerprint.get(alert.fingerprint) ?? [];
    const startMs = alert.startsAt.getTime();
    const knownWithSameStart = entriesWithFingerprint.find(({ startsAt }) => startsAt.getTime() === startMs);
    if (knownWithSameStart !== undefined) return isFiring(alert) || !isFiring(knownWithSameStart);
    // The alert is outdated if `known` has a later start. If the entries of both starts fire, it is not: the sender has
    // corrected the start, as Alertmanager takes the earliest start that it gets.
    return entriesWithFingerprint.some(
      (entry) => entry.startsAt.getTime() > startMs && !(isFiring(alert) && isFiring(entry)),
    );
  };
}

/** The known alerts with the reported changes; alerts that were reported for the first time come last. */
function mergeSenderAlerts(
  known: readonly SenderAlert[],
  update: { reported: readonly SenderAlert[]; reportedChanges: readonly SenderAlert[]; state: AlertStatus },
): readonly SenderAlert[] {
  const { reported, reportedChanges, state } = update;
  const merged = new Map(known.map((alert) => [senderAlertIdOf(alert), alert]));
  // A report may contain an alert twice, as firing and as resolved: the resolved entry is the later one.
  for (const alert of reportedChanges)
    if (merged.get(senderAlertIdOf(alert))?.state !== 'resolved') merged.set(senderAlertIdOf(alert), alert);
  const reportedFingerprints = new Set(reported.map(({ fingerprint }) => fingerprint));
  // An alert is forgotten if it still fires here, while the sender no longer reports it (a silence, a removed rule) and
  // says that nothing fires. So it counts as new if it fires again.
  const isFiringButUnreported = (alert: SenderAlert): boolean =>
    state === 'resolved' && isFiring(alert) && !reportedFingerprints.has(alert.fingerprint);
  const kept = [...merged.values()].filter((alert) => !isFiringButUnreported(alert));
  return dropSurplusAlerts(resolveSupersededFirings(kept), new Set(reported.map(senderAlertIdOf)));
}

/**
 * Entries with one fingerprint are the same alert, which fires once at a time. A firing entry resolves all entries
 * before it in the list. A resolved entry resolves only those before it that also started earlier.
 */
function resolveSupersededFirings(alerts: readonly SenderAlert[]): readonly SenderAlert[] {
  const resolveBeforeMsByFingerprint = new Map<string, number>();
  return alerts
    .toReversed()
    .map((alert): SenderAlert => {
      const { fingerprint, startsAt } = alert;
      const resolveStartsBeforeMs = resolveBeforeMsByFingerprint.get(fingerprint) ?? -Infinity;
      const ownResolveBeforeMs = isFiring(alert) ? Infinity : startsAt.getTime();
      resolveBeforeMsByFingerprint.set(fingerprint, Math.max(resolveStartsBeforeMs, ownResolveBeforeMs));
      return isFiring(alert) && startsAt.getTime() < resolveStartsBeforeMs ? { ...alert, state: 'resolved' } : alert;
    })
    .reverse();
}

/**
 * Drops alerts above the limit: first the oldest resolved ones, then the oldest firing ones. The alerts of the last
 * report stay, so that its repetition changes nothing.
 */
function dropSurplusAlerts(alerts: readonly SenderAlert[], reportedIds: ReadonlySet<string>): readonly SenderAlert[] {
  const surplus = alerts.length - MAX_SENDER_ALERTS;
  if (surplus <= 0) return alerts;
  const unreportedAlerts = alerts.filter((alert) => !reportedIds.has(senderAlertIdOf(alert)));
  const alertsInDropOrder = [
    ...unreportedAlerts.filter((alert) => !isFiring(alert)),
    ...unreportedAlerts.filter(isFiring),
  ];
  const dropped = new Set(alertsInDropOrder.slice(0, surplus));
  return alerts.filter((alert) => !dropped.has(alert));
}

/** When an incident began: at the earliest start of the firing alerts, or of all reported ones if none fires. */
function incidentStart(
  alerts: readonly SenderAlert[],
  reported: readonly SenderAlert[],
  fallbackStartedAt: Date,
): Date {
  const firing = alerts.filter(isFiring);
  const starts = (firing.length > 0 ? firing : reported).map(({ startsAt }) => startsAt.getTime());
  return starts.length === 0 ? fallbackStartedAt : new Date(Math.min(...starts));
}
