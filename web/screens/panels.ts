// All parts that the page loads later are in one file: separate imports would add files to the first load.
export { OpenedMenu } from '../conversation/opened-menu.tsx';
export { PictureViewer } from '../timeline/picture-viewer.tsx';
export { GroupPanel } from './group-panel.tsx';
export { NewConversation } from './people/new-conversation.tsx';
export { OwnFiles } from './people/own-files.tsx';
export { PersonCard } from './people/person-card.tsx';
export { SettingsPanel } from './settings/settings-panel.tsx';
export { Invitation } from './sign-in/invitation.tsx';
export { SignIn } from './sign-in/sign-in.tsx';
