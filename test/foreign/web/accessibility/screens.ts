import { CONVERSATION_SCREENS } from './conversation-screens.ts';
import { DIALOG_SCREENS } from './dialog-screens.ts';
import type { Screen } from './screen-visits.ts';
import { SIGN_IN_SCREENS, SIGNED_OUT_SCREENS } from './sign-in-screens.ts';

/** All screens of the browser client with their states. A new screen is one entry in the file of its area. */
export const SCREENS: readonly Screen[] = [
  ...SIGN_IN_SCREENS,
  ...SIGNED_OUT_SCREENS,
  ...CONVERSATION_SCREENS,
  ...DIALOG_SCREENS,
];
