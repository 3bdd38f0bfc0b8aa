import type { ChatState } from '../core/chat-state.ts';
import type { GroupApi } from '../core/group-api.ts';
import type { ConversationEntry } from '../core/unread.ts';

/** What the parts of the panel work with. */
export interface PanelPart {
  readonly chat: ChatState;
  readonly api: GroupApi;
  readonly entry: ConversationEntry;
  /** Owners and admins of the group, and administrators of the installation. */
  readonly mayManage: boolean;
  /** The owner of the group, and administrators of the installation. */
  readonly mayOwn: boolean;
}
