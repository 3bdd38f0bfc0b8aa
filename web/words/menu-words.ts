/** The words of the menu of a message, which the page loads with its first use. */
export const menuWords = {
  menuOf: (seq: number) => `Message ${seq}`,
  copyText: 'Copy text',
  copyLink: 'Copy link',
  linkCopied: 'Link copied.',
} as const;
