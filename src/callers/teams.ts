import { adaptiveCard } from './adaptive-card.ts';
import type { CallerFormat, CallerRequest } from './core/caller-format.ts';
import { messageCard } from './message-card.ts';

/**
 * The bodies that Teams takes: an Adaptive Card, or a MessageCard, which needs no `@type`. Only a suffix of the address
 * chooses this format.
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
