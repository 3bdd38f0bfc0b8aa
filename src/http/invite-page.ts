import { createHash } from 'node:crypto';
import type { Config } from '../config/config.ts';
import type { InvitePreview } from '../operations/groups/invite-preview.ts';

const STYLE = `
body{margin:0;min-height:100vh;display:grid;place-items:center;background:#f3f4f6;color:#16181d;
font:16px/1.5 system-ui,sans-serif}
main{box-sizing:border-box;width:min(34rem,100% - 2rem);margin:1rem;padding:2rem;background:#fff;border-radius:12px;
box-shadow:0 1px 3px #0003}
h1{margin:.25rem 0;font-size:1.6rem;overflow-wrap:anywhere}
.quiet{margin:0;color:#5b6270;font-size:.95rem}
.about{white-space:pre-line;overflow-wrap:anywhere}
.join{display:inline-block;margin:.75rem 0 0;padding:.5rem 1rem;border-radius:8px;background:#1f5fcc;color:#fff}
h2{margin:1.5rem 0 .25rem;font-size:1rem}
ol{margin:0;padding-left:1.25rem}
code{overflow-wrap:anywhere;font-size:.9em}
@media(prefers-color-scheme:dark){body{background:#16181d;color:#eceef2}main{background:#22252c}.quiet{color:#a3aab8}}`;

/**
 * The content security policy allows only the style in the page: no script, no content of other origins, and no frame
 * around the page.
 */
export function pageHeaders(): Readonly<Record<string, string>> {
  const styleHash = createHash('sha256').update(STYLE).digest('base64');
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    'x-frame-options': 'DENY',
    'x-robots-tag': 'noindex',
  };
}

type PageConfig = Pick<Config, 'projectName' | 'registration' | 'publicEndpoints'>;

/** The two addresses of one invitation. */
interface InviteLinks {
  /** The address that people pass on, which shows the page of the invitation. */
  readonly link: string;
  /** The address at which the browser client accepts the invitation; null: this server has no browser client. */
  readonly joinLink: string | null;
}

/** The page of an invitation's link: the group, and how to join it. */
export function renderInvite(pageConfig: PageConfig, preview: InvitePreview, { link, joinLink }: InviteLinks): string {
  const { projectName } = pageConfig;
  const { group, invited_by: inviter, expires_at: end } = preview;
  const inviterPhrase = inviter === null ? 'You are invited' : `<bdi>${escapeHtml(inviter)}</bdi> invites you`;
  const about = group.about === null ? '' : `<p class="about" dir="auto">${escapeHtml(group.about)}</p>`;
  const validityParagraph =
    end === null
      ? ''
      : `<p class="quiet">The invitation is good until <time datetime="${end}">${formatMinute(end)} UTC</time>.</p>`;
  return renderPage(`${group.title} · ${projectName}`, [
    `<p class="quiet">${inviterPhrase} to a group on <bdi>${escapeHtml(projectName)}</bdi></p>`,
    `<h1 dir="auto">${escapeHtml(group.title)}</h1>`,
    `<p class="quiet">${group.members === 1 ? '1 member' : `${group.members} members`}</p>`,
    about,
    joinLink === null ? '' : `<p><a class="join" href="${escapeHtml(joinLink)}">Join in this browser</a></p>`,
    `<h2>${joinLink === null ? 'How to join' : 'How to join with another client'}</h2><ol>${joinSteps(pageConfig)
      .map((step) => `<li>${step}</li>`)
      .join('')}</ol>`,
    `<p><code>${escapeHtml(link)}</code></p>`,
    validityParagraph,
  ]);
}

/** The page for an invitation that is not valid. */
export function renderInviteError({ projectName }: PageConfig, sentence: string): string {
  return renderPage(projectName, [
    `<p class="quiet"><bdi>${escapeHtml(projectName)}</bdi></p>`,
    `<h1>No invitation</h1>`,
    `<p>${escapeHtml(sentence)}.</p>`,
    '<p class="quiet">Ask whoever sent you the link for a new one.</p>',
  ]);
}

/**
 * The page of a sign-in link. Browsers do not send the token after the #, so opening the page does not use up the link.
 */
export function renderSignIn({ projectName, publicEndpoints }: PageConfig): string {
  const name = `<bdi>${escapeHtml(projectName)}</bdi>`;
  return renderPage(`Sign in · ${projectName}`, [
    `<p class="quiet">${name}</p>`,
    '<h1>Sign in</h1>',
    `<p>The address of this page is a link that signs you in on ${name}, once. Keep it to yourself.</p>`,
    `<h2>How to use it</h2><ol><li>${openClientStep(publicEndpoints)}</li>`,
    '<li>Copy the whole address of this page, with what is behind the #, and give it to the client: in a terminal',
    '<code>klatch chat sign-in</code> asks for it.</li></ol>',
  ]);
}

const ACCOUNT_STEP: Readonly<Record<Config['registration'], (name: string) => string>> = {
  open: (name) => `Get an account on ${name}, if you have none.`,
  invite: (name) => `Get an account on ${name}, if you have none: this link is what you sign up with.`,
  closed: (name) => `You need an account on ${name}: its administrator gives you one.`,
};

function joinSteps({ projectName, registration, publicEndpoints }: PageConfig): string[] {
  return [
    ACCOUNT_STEP[registration](`<bdi>${escapeHtml(projectName)}</bdi>`),
    openClientStep(publicEndpoints),
    'Join with this link:',
  ];
}

function openClientStep(publicEndpoints: readonly string[]): string {
  const where = publicEndpoints.map((address) => `<code>${escapeHtml(address)}</code>`).join(' or ');
  return `Open your client${where === '' ? '' : `, connected to ${where}`}.`;
}

function renderPage(title: string, parts: readonly string[]): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<main>
${parts.filter((part) => part !== '').join('\n')}
</main>
</body>
</html>
`;
}

/** A moment for people, such as `2026-11-20 08:00`. */
function formatMinute(moment: string): string {
  return moment.slice(0, 16).replace('T', ' ');
}

const HTML_ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes a text for use as the content of an element or of a quoted attribute. */
export function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (sign) => HTML_ENTITIES[sign]!);
}
