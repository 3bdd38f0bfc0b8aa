import { adaptiveCard } from './adaptive-card.ts';
import type { CallerFormat, CallerRequest } from './core/caller-format.ts';
import { messageCard } from './message-card.ts';

/**
 * The bodies that Teams accepts: an Adaptive Card, or a MessageCard, which needs no `@type`. The address has to name
 * this format.
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
