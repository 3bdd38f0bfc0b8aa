import { Alertmanager, type FiredAlert } from '../../test/foreign/callers/alertmanager.ts';
import type { CleanUp } from '../clean-up.ts';
import { until } from '../until.ts';

const PAIR_SIZE = 2;
const STARTS_AT = '2026-01-02T03:04:05Z';
const RESOLVED_AT = '2026-01-02T03:14:05Z';
const FIRES_FOR_MS = 3_600_000;
/** The number of steps of each alert: instance web-1 fires, web-2 fires too, both are resolved. */
const STEPS = 3;

const configuration = (webhook: string): string => `
route: { receiver: klatch, group_by: [alertname], group_wait: 0s, group_interval: 1s, repeat_interval: 4h }
receivers:
  - { name: klatch, webhook_configs: [ { url: '${webhook}' } ] }
`;

const nameOf = (alert: number): string => `Alert${alert}`;

/**
 * The texts of the messages that show an alert after a step: first the message that the server edits, then one for each
 * later change.
 */
function textsOf(alert: number, step: number): string[] {
  const name = nameOf(alert);
  const [web1, web2] = ['instance=web-1 · since 03:04 UTC', 'instance=web-2 · since 03:04 UTC'] as const;
  const added = `🔴 ${name} (2 firing)\n${web2}`;
  if (step === 0) return [`🔴 ${name} (1 firing)\n${web1}`];
  if (step === 1) return [`🔴 ${name} (2 firing)\n${web1}\n${web2}`, added];
  const resolved = `🟢 ${name} resolved (2 alerts)`;
  return [`${resolved}\n${[web1, web2].join('\n').replaceAll('since 03:04', '03:04 to 03:14')}`, added, resolved];
}

/** The alert of each instance, as Prometheus posts it to the Alertmanagers at this step. */
function reportOf(alert: number, step: number): FiredAlert[] {
  const endsAt = step === STEPS - 1 ? RESOLVED_AT : new Date(Date.now() + FIRES_FOR_MS).toISOString();
  const instances = step === 0 ? ['web-1'] : ['web-1', 'web-2'];
  return instances.map((instance) => ({ labels: { alertname: nameOf(alert), instance }, startsAt: STARTS_AT, endsAt }));
}

/** Two clustered Alertmanagers that report the same alerts to one webhook. */
export class PairedAlertmanagers {
  readonly #pair: readonly Alertmanager[];
  readonly #readTexts: () => Promise<string[]>;
  #alerts = 0;
  #round = -1;

  private constructor(pair: readonly Alertmanager[], readTexts: () => Promise<string[]>) {
    this.#pair = pair;
    this.#readTexts = readTexts;
  }

  /** Resolves when the two Alertmanagers have found each other. */
  static async start(
    { webhook, readTexts }: { readonly webhook: string; readonly readTexts: () => Promise<string[]> },
    cleanUp: CleanUp,
  ): Promise<PairedAlertmanagers> {
    const pair: Alertmanager[] = [];
    for (let n = 0; n < PAIR_SIZE; n += 1) {
      const alertmanager = await Alertmanager.start(configuration(webhook), { peers: pair });
      await cleanUp.add('Alertmanager', () => alertmanager.stop());
      pair.push(alertmanager);
    }
    await until('the Alertmanagers know each other', async () => {
      const members = await Promise.all(pair.map((each) => each.members()));
      return members.every((count) => count === PAIR_SIZE);
    });
    return new PairedAlertmanagers(pair, readTexts);
  }

  /** Reports the next step of each unresolved alert, and begins another alert. */
  async report(): Promise<void> {
    this.#alerts += 1;
    await this.#reportNextSteps();
  }

  /** Resolves when the group shows the state that was reported last. */
  async areShown(): Promise<void> {
    const expected = this.#current().flatMap(({ alert, step }) => textsOf(alert, step));
    await until('what the Alertmanagers reported is shown', async () => {
      const texts = new Set(await this.#readTexts());
      return expected.every((text) => texts.has(text));
    });
  }

  /** Reports every alert as resolved. Resolves when the group shows that. */
  async finish(): Promise<void> {
    for (let left = STEPS - 1; left > 0; left -= 1) {
      await this.#reportNextSteps();
      await this.areShown();
    }
  }

  /** The number of alerts that have begun. */
  get count(): number {
    return this.#alerts;
  }

  /** The differences between the expected and the shown messages of the group, in words. Call it after `finish`. */
  async violations(): Promise<string[]> {
    const texts = await this.#readTexts();
    const expected = Array.from({ length: this.#alerts }, (_, alert) => textsOf(alert, STEPS - 1));
    const wrong = expected.flatMap((wanted, alert) => {
      const shown = texts.filter((text) => text.includes(`${nameOf(alert)} `));
      if (shown.join('\n') === wanted.join('\n')) return [];
      return [`${nameOf(alert)} is shown by ${shown.length} messages as ${JSON.stringify(shown)}`];
    });
    const count = expected.flat().length;
    return texts.length === count ? wrong : [...wrong, `${texts.length} messages show alerts in place of ${count}`];
  }

  async #reportNextSteps(): Promise<void> {
    this.#round += 1;
    const alerts = this.#current().flatMap(({ alert, step }) => reportOf(alert, step));
    for (const alertmanager of this.#pair) await alertmanager.put(alerts);
  }

  /** The alerts that take a step in this round, with that step. Each alert begins one round after the previous one. */
  #current(): { alert: number; step: number }[] {
    const steps = Array.from({ length: STEPS }, (_, step) => ({ alert: this.#round - step, step }));
    return steps.filter(({ alert }) => alert >= 0 && alert < this.#alerts);
  }
}
