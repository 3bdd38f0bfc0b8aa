import type { ChatState } from '../core/chat-state.ts';
import type { GroupApi } from '../core/group-api.ts';
import type { ConversationEntry } from '../core/unread.ts';

/** The props of the parts of the panel. */
export interface PanelPartProps {
  readonly chat: ChatState;
  readonly api: GroupApi;
  readonly entry: ConversationEntry;
  /** True for owners and admins of the group, and for administrators of the installation. */
  readonly mayManage: boolean;
  /** True for the owner of the group, and for administrators of the installation. */
  readonly hasOwnerRights: boolean;
}
