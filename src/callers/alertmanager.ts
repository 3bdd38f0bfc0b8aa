import { readAlertGroup } from './core/alert-group.ts';
import type { CallerFormat } from './core/caller-format.ts';
import { messageForm } from './core/message-form.ts';
import { stringOf } from './core/values.ts';

/** The webhook of Alertmanager, in version 4 of its body. Mimir, vmalert and Karma send the same body. */
export const alertmanager: CallerFormat = {
  name: 'alertmanager',
  matches: ({ body }) =>
    Array.isArray(body['alerts']) &&
    typeof body['status'] === 'string' &&
    (typeof body['groupKey'] === 'string' || typeof body['receiver'] === 'string'),
  read: ({ body }) => {
    const { cardOf, alert } = readAlertGroup(body, {
      urls: (each) => [stringOf(each['generatorURL'])],
      measuredValues: () => '',
    });
    return messageForm({
      cards: [cardOf()],
      alert,
      cardsForKnownAlert: (known, onlyFingerprints) => [cardOf(known, onlyFingerprints)],
    });
  },
};
