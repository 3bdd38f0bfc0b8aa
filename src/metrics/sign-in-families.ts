import type { ActivationCodes } from '../operations/core/activation-codes.ts';
import { samplesByLabel, counter, singleSample, type MetricFamily } from './family.ts';

/** Metrics on sign-ins and sign-ups, and on failed attempts. */
export function signInFamilies({ metrics }: ActivationCodes): MetricFamily[] {
  return [
    counter({ name: 'klatch_activations_started_total', help: 'Proofs of an address that were begun.' }, () =>
      singleSample(metrics.startedActivations),
    ),
    counter(
      {
        name: 'klatch_activation_rejections_total',
        help: 'Proofs of an address that were not begun, or sent no code: too many of a source, an address or the installation, too early again, or the provider was away.',
        labels: ['reason'],
      },
      () => samplesByLabel('reason', metrics.refused),
    ),
    counter(
      {
        name: 'klatch_codes_total',
        help: 'Activation codes that a provider accepted (sent) or refused (failed).',
        labels: ['outcome'],
      },
      () => samplesByLabel('outcome', metrics.codes),
    ),
    counter({ name: 'klatch_code_failures_total', help: 'Wrong codes that people entered.' }, () =>
      singleSample(metrics.incorrectCodeAttempts),
    ),
    counter(
      {
        name: 'klatch_sign_ins_total',
        help: 'Sessions that began by a code, by a link, or by a new account.',
        labels: ['way'],
      },
      () => samplesByLabel('way', metrics.signInsByProof),
    ),
  ];
}
