// One file for all parts that are not needed at once: each import of its own would make the first load one file more.
export { OpenedMenu } from '../conversation/opened-menu.tsx';
export { PictureViewer } from '../timeline/picture-viewer.tsx';
export { GroupPanel } from './group-panel.tsx';
export { NewConversation } from './people/new-conversation.tsx';
export { OwnFiles } from './people/own-files.tsx';
export { PersonCard } from './people/person-card.tsx';
export { SettingsPanel } from './settings/settings-panel.tsx';
export { Invitation } from './sign-in/invitation.tsx';
export { SignIn } from './sign-in/sign-in.tsx';
