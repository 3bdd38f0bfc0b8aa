import { adaptiveCard } from './adaptive-card.ts';
import type { CallerFormat, CallerRequest } from './core/caller-format.ts';
import { messageCard } from './message-card.ts';

/**
 * The bodies that Microsoft Teams accepts: an Adaptive Card, or a MessageCard, which needs no `@type` here. Used only
 * if the webhook URL has the suffix `teams`.
 */
export const teams: CallerFormat = {
  name: 'teams',
  matches: () => false,
  delegateOf: cardFormatOf,
  read: (request) => cardFormatOf(request).read(request),
};

function cardFormatOf(request: CallerRequest): CallerFormat {
  return adaptiveCard.matches(request) ? adaptiveCard : messageCard;
}
