/** The outcomes of attempts in a delivery log; `skipped` and `expired` are messages that were never sent. */
export const deliveryOutcomes = ['delivered', 'failed', 'unregistered', 'dead_lettered', 'skipped', 'expired'] as const;
export type DeliveryOutcome = (typeof deliveryOutcomes)[number];
