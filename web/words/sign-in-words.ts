const numberFormat = new Intl.NumberFormat();
const plural = new Intl.PluralRules('en');

/** The words of signing in, signing up and joining by an invitation. */
export const signInWords = {
  signIn: 'Sign in',
  linkOpened: 'The link that you opened signs you in, once.',
  signInByLink: 'Sign in with the link',
  haveLink: 'I have a sign-in link',
  pasteLink: 'Paste the sign-in link that you were sent',
  pasteLinkOrInvite: 'Paste the sign-in link or the invitation that you were sent',
  notALink: 'This is not a sign-in link. Such a link ends with #kll_ and 43 more characters.',
  inviteIsNoLink: 'This is an invitation to a group. Here you need a sign-in link, too.',
  whereLinksComeFrom:
    'The administrator of this server makes sign-in links: on the server, with klatch user invite, or klatch admin-link for the first administrator.',
  email: 'E-mail address',
  phone: 'Telephone number',
  emailOrPhone: 'E-mail address or telephone number',
  phoneHelp: 'With + and the code of the country, such as +49 170 1234567.',
  addressHelp: {
    open: 'A code is sent to it. A new address gets an account.',
    invite: 'A code is sent to it. A new address gets an account where you have an invitation.',
    closed: 'A code is sent to it if the administrator of this server has made an account with it.',
  },
  haveInvite: 'I have an invitation',
  inviteLink: 'Link of the invitation',
  sendCode: 'Send a code',
  sharedComputer: 'Other people use this computer',
  sharedComputerHelp: (hours: number) =>
    `Then you are signed out after ${numberFormat.format(hours)} hours, or when the browser is closed, and it keeps no texts that you did not send.`,
  codeSent: {
    email: (address: string) =>
      `If ${address} can be used here, a mail with a code is on its way. Look into the folder for spam, too.`,
    phone: (address: string) => `If ${address} can be used here, a code is on its way to it.`,
  },
  onlyInvited: 'An address without an account gets a code only with an invitation.',
  onlyAccounts: 'Only an address that has an account gets a code.',
  code: 'Code of six digits',
  codeHelp: 'The newest code works for a day, three attempts long.',
  sendAnother: 'Send another code',
  sendAnotherIn: (seconds: number) => `Send another code (in ${numberFormat.format(seconds)} s)`,
  anotherWasSent: 'Another code was asked for.',
  otherAddress: 'Use another address',
  newAccount: (address: string) => `${address} has no account here yet. Choose how others see you.`,
  newAccountByInvite:
    'Choose how others see you. After a sign-out, only a sign-in link of the administrator of this server lets you in again.',
  nick: 'Nick, by which others mention you',
  nickHelp: 'Letters of the Latin alphabet, digits, dots, dashes and underscores, 32 at most.',
  name: 'Name (optional)',
  createAccount: 'Create the account',
  invitedTo: (title: string, inviter: string | null) =>
    inviter === null ? `You are invited to the group “${title}”.` : `${inviter} invites you to the group “${title}”.`,
  members: (count: number) => `${numberFormat.format(count)} ${plural.select(count) === 'one' ? 'member' : 'members'}`,
  signInToJoin: 'Sign in to join it.',
  join: 'Join',
  notNow: 'Not now',
  reload: 'Reload the page',
  ended: {
    expired: (nick: string) =>
      `You were signed out because your session has ended: @${nick} was signed in for a limited time, as others use this computer.`,
    ended: (nick: string) =>
      `You were signed out because your session has ended: @${nick} or the administrator of this server ended it elsewhere.`,
    'other-tab': (nick: string) =>
      `You were signed out because your session has ended: @${nick} signed out in another tab.`,
  },
  replaced: (name: string, nick: string) => `${name} (@${nick}) is signed in to this browser now.`,
  continueAs: (nick: string) => `Continue as @${nick}`,
  textsKept: (nick: string) =>
    `This browser has texts of @${nick} that were not sent. They come back when @${nick} signs in here.`,
} as const;

/** A text of the server or of `web/core` as a whole sentence. */
export function asSentence(text: string): string {
  const capitalized = text.charAt(0).toLocaleUpperCase('en') + text.slice(1);
  return /[.!?…]$/.test(capitalized) ? capitalized : `${capitalized}.`;
}
