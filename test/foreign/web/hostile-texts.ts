/** Texts of a stranger that try to become a tag, an attribute, an address, a template or a style. */
const PAYLOADS = [
  '<img src=x onerror=strike()>',
  '<script>strike()</script>',
  '<svg/onload=strike()>',
  '"><iframe srcdoc="<script>parent.strike()</script>">',
  `' onmouseover='strike()' x='`,
  'javascript:strike()',
  'JaVaScRiPt://%0astrike()',
  'data:text/html,<script>strike()</script>',
  'vbscript:strike()',
  '<a href="javascript:strike()">x</a>',
  '<style>*{display:none}</style>',
  '<base href=//evil.example/>',
  '<meta http-equiv=refresh content=0;url=//evil.example>',
  '<form action=javascript:strike()><button>x',
  '<math><mtext><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=strike()&gt;">',
  `{{constructor.constructor('strike()')()}}`,
  'https://evil.example/"onmouseover="strike()',
  'mailto:x@evil.example?subject=<script>strike()</script>',
  '&lt;img src=x onerror=strike()&gt;',
  '__proto__ constructor toString',
] as const;

const CONTEXTS: readonly ((payload: string) => string)[] = [
  (payload) => payload,
  (payload) => `**${payload}**`,
  (payload) => `[x](${payload})`,
  (payload) => `\`${payload}\``,
  (payload) => `> ${payload}`,
  (payload) => `https://evil.example/${payload}`,
  (payload) => `@alice ${payload}`,
  (payload) => `\u202E${payload}\u2066`,
  (payload) => payload.toUpperCase(),
  (payload) => `${payload.slice(0, 3)}\u200B${payload}`,
];

/** 200 texts, all different: 20 payloads in 10 contexts. */
export const HOSTILE_TEXTS: readonly string[] = PAYLOADS.flatMap((payload) =>
  CONTEXTS.map((context) => context(payload)),
);

/**
 * The hostile texts for names and titles: without invisible characters and changes of direction, which the server does
 * not accept there.
 */
export const HOSTILE_NAMES: readonly string[] = HOSTILE_TEXTS.map((text) =>
  text.replaceAll(/[\u200B\u202E\u2066]/g, ''),
);
