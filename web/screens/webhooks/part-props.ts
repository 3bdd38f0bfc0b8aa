import type { AppState } from '../../core/app-state.ts';
import type { ChatState } from '../../core/chat-state.ts';
import type { ConversationPanel, Route } from '../../core/routes.ts';
import type { ConversationEntry } from '../../core/unread.ts';
import type { HookApi } from '../../core/webhooks/hook-api.ts';

/** The props of the webhooks panel. */
export interface WebhooksPanelProps {
  readonly state: AppState;
  readonly chat: ChatState;
  readonly entry: ConversationEntry;
}

/** The props of the parts of the webhooks panel. */
export interface WebhookPartProps extends WebhooksPanelProps {
  readonly api: HookApi;
  /** The route of another part of this panel; without `hook` the list of hooks. */
  readonly routeTo: (panel: ConversationPanel, hook?: number) => Route;
}

/** The props of the parts of the page about one hook. */
export interface HookPageProps extends WebhookPartProps {
  readonly hook: number;
}
