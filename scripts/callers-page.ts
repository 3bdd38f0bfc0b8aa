import { messageLines } from '../client/terminal/chat-text.ts';
import { isIgnored } from '../src/callers/core/message-form.ts';
import { formats } from '../src/callers/formats.ts';
import { programs } from '../src/callers/programs.ts';
import type { CallerAddress, CallerProgram, ProgramSetup } from '../src/callers/programs/program.ts';
import { readExpectedText, readFixture, requestOf } from '../test/callers/fixtures.ts';
import { plain } from './markdown.ts';

/** A local time, so that the page shows the same time on every machine. */
const SHOWN_AT = new Date(2026, 10, 22, 10, 2);
const GROUP_TITLE = 'Operations';

const HEAD = `Programs that can post to Slack, Discord, Teams, Telegram, ntfy, Gotify or a webhook can post into a group. Each of them is
given the URL of the group, or a part of it. \`klatch group info GROUP\` prints what to paste for each kind of program:

| Written here as | Stands for |
|---|---|
| \`<address>\` | the URL of the group: \`https://chat.example.org/v1/webhooks/<token>\` |
| \`<server>\` | what stands before \`/v1/webhooks/\`: \`https://chat.example.org\` |
| \`<host>\` | the same without its scheme: \`chat.example.org\` |
| \`<token>\` | what stands behind \`/v1/webhooks/\` |

- Treat each of these addresses like a password: it posts into the group.
- A suffix such as \`/slack\` says which format the body has, and which answer the program expects. Without one, the shape of the body tells. [Formats of other products](webhooks.md#formats-of-other-products) lists all of them.
- Addresses that begin with \`<server>\` and do not go on with \`/v1/webhooks\` need \`http.caller-paths\`, which is on by default.
- While the database is away a post is answered 503. Whether it is repeated depends on the program; its section says so where that is known.
- Under "In the group" stands what \`klatch chat\` shows. A test makes each of these texts of a body as the program sends it. On a terminal with colours the title has that of its mood.`;

const DIFFERENCES = `Bodies of these products are read for their text. What has no counterpart in a group is left out, and never refuses the
message.

### All three

- The answer comes when the message is on disk. Where nothing was posted, it has a status that says so; [webhooks.md](webhooks.md#answers) lists them.
- A server or token that is busy answers 503 with \`Retry-After\`, never 429. A token may post 100 messages a second.
- A message has at most 40,000 characters, and what is longer is cut. Of a text that is read as Slack's or Mattermost's, the first 60,000 characters are looked at.
- Files and pictures behind an address are never fetched. Links other than http, https and mailto lose their address.
- Bodies up to 1 MiB are taken (\`http.max-body-size\`).
- The programs that post do not sign. A group can refuse everything that is [not signed](signed-posts.md).

### Slack

- \`channel\` is ignored: the token says which group it is.
- \`icon_emoji\`, \`link_names\`, \`parse\`, \`unfurl_links\` and \`unfurl_media\` are ignored. \`username\` and \`icon_url\` are shown beside the BOT mark.
- \`thread_ts\` and \`reply_broadcast\` are ignored: there are no threads.
- \`response_type\` is ignored: there are no ephemeral messages, and everybody in the group sees each message.
- Buttons that open an address become a line with it. Other buttons, menus and inputs are left out, since nothing can answer them.
- \`*bold*\`, \`_italic_\` and \`~strike~\` stay as they are typed; links, names, dates and emoji are written out.
- \`<!here>\`, \`<!channel>\`, \`<!everyone>\`, user groups and ids without a name mention nobody. \`<@U1|ada>\` becomes \`@ada\`.
- The colours \`good\`, \`warning\` and \`danger\`, and those that Slack draws for them, are shown as 🟢, 🟠 and 🔴. Other colours are not shown.
- Pictures are shown as their address. Nothing fetches them.
- Of Slack's error texts there are \`invalid_payload\` (400), \`no_service\` (404) and \`channel_is_archived\` (410). Other errors are a sentence.
- There are incoming webhooks alone: no Web API (\`chat.postMessage\`, \`chat.update\`), no slash commands, no Events API, no Socket Mode.

### Discord

- The id in the path may be anything: the token says which group it is.
- \`thread_id\`, \`thread_name\` and \`applied_tags\` are ignored: there are no threads.
- \`tts\`, \`flags\`, stickers and emoji of a server are not known; an emoji of a server is shown as \`:name:\`.
- Buttons that open an address become a line with it; other components are left out but for their text. Polls are shown as text.
- The colour of an embed is not shown.
- Ids in mentions (\`<@1>\`, \`<#1>\`) stay numbers and mention nobody. \`allowed_mentions\` that names no users takes all mentions away.
- A message cannot be got, edited or deleted by its id. With \`?wait=true\` the answer has the id, without the embeds.
- Of Discord's error codes there are 10015 (404 and 410) and 50035 (400 and 413). Others are 0 with a sentence; 503 has \`retry_after\` too.
- There is no gateway and no bot interface.

### Mattermost

- \`channel\` is ignored: the token says which group it is.
- \`icon_emoji\`, \`type\`, \`priority\` and all of \`props\` but \`attachments\` are ignored.
- \`root_id\` is ignored: there are no threads.
- Buttons that open an address become a line with it. Interactive buttons and menus are left out.
- Markdown stays as it is typed but for its links, which become \`label (address)\`; tables stay tables of text.
- \`@channel\`, \`@here\` and \`@all\` are words: nothing mentions all members.
- Text is read as Slack's: \`&lt;\`, \`&gt;\` and \`&amp;\` become characters, \`<address|label>\` a link.
- Text longer than 40,000 characters is cut, and never split into several messages.
- There are incoming webhooks alone; outgoing ones are [reverse webhooks](reverse-webhooks.md).`;

/** Renders docs/callers.md from the registry of programs and the texts that tests check. */
export function renderCallers(): string {
  return `${[
    '# Paste this address into …',
    '<!-- Made by scripts/docs.ts from src/callers/programs.ts and test/callers/fixtures. Do not edit. -->',
    HEAD,
    contents(),
    ...programs.flatMap(section),
    '## Differences from Slack, Discord and Mattermost',
    DIFFERENCES,
  ].join('\n\n')}\n`;
}

function contents(): string {
  const rows = programs.flatMap((program) => {
    const setupsByAddress = Map.groupBy(program.setups, ({ address }) => address);
    return [...setupsByAddress].map(([address, setups]) => {
      const titles = setups.flatMap(({ title }) => title ?? []);
      return `| [${program.name}](#${anchorOf(program.name)}) | ${titles.join(', ')} | ${valuesOf(address)} |`;
    });
  });
  return ['| Program | Type | What is pasted |', '|---|---|---|', ...rows].join('\n');
}

/** The anchor that GitHub and similar hosts make from a heading. */
export function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-');
}

function valuesOf({ valuesToPaste: values }: CallerAddress): string {
  const entries = Object.entries(values);
  if (entries.length === 1) return `\`${entries[0]![1]}\``;
  return entries.map(([name, value]) => `${name} \`${value}\``).join(', ');
}

function section({ name, setups, remarks }: CallerProgram): string[] {
  const shownFixtures = new Set<string>();
  const parts = setups.flatMap((setup) => {
    const isShown = shownFixtures.has(setup.fixture);
    shownFixtures.add(setup.fixture);
    return [...configurationOf(setup), ...(isShown ? [] : ['In the group:', codeBlock('text', shownMessage(setup))])];
  });
  return [`## ${name}`, ...parts, remarks.map((remark) => `- ${plain(remark)}`).join('\n')];
}

function configurationOf({ title, configurationPlace: place, language, configuration }: ProgramSetup): string[] {
  const heading = title === undefined ? 'In ' : `**${plain(title)}**, in `;
  return [`${heading}${plain(place)}:`, codeBlock(language, configuration)];
}

/** The message that the server makes of the request in a fixture, as the terminal client prints it. */
function shownMessage({ fixture }: ProgramSetup): string {
  const [formatName, ...rest] = fixture.split('/');
  const [format, name] = [formats.find((each) => each.name === formatName)!, `${rest.join('/')}.json`];
  const form = format.read(requestOf(readFixture(format, name)));
  const message = {
    id: '7:42',
    seq: 42,
    rev: 43,
    sender: { id: 7, name: 'Webhook', nick: null, kind: 'webhook' },
    label: isIgnored(form) || form.senderLabel === null ? undefined : form.senderLabel,
    text: readExpectedText(format, name).trimEnd(),
    sent_at: SHOWN_AT.toISOString(),
  };
  return messageLines(message, { name: GROUP_TITLE, now: SHOWN_AT, paint: (_, text) => text }).join('\n');
}

/** A fenced code block. The fence is longer than any in the content. */
function codeBlock(language: string, content: string): string {
  const longest = Math.max(2, ...[...content.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}${language}\n${content}\n${fence}`;
}
