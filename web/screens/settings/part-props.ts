import type { AppState } from '../../core/app-state.ts';
import type { ChatState } from '../../core/chat-state.ts';

export interface SettingsPartProps {
  readonly state: AppState;
  readonly chat: ChatState;
}
