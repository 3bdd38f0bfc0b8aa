import type { ConversationId, HookId } from '../model/ids.ts';
import type { Services } from './services.ts';

/**
 * Tells every process that a hook's row was changed (its generation was raised and committed before). Once it resolves,
 * no attempt starts any more that knows nothing of the change. To be called whatever became of the commit: a change
 * whose answer was lost is a change.
 */
export function announceHookChange(
  { bus }: Services,
  hook: { readonly conversationId: ConversationId; readonly hookId: HookId },
): Promise<void> {
  bus.publish('hooksChanged', [hook.conversationId]);
  return Promise.resolve();
}
