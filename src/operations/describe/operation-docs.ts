import * as z from 'zod';
import { errorKinds, type ErrorCode } from '../../errors.ts';
import { scopeMeanings } from '../../model/scopes.ts';
import type { Operation, AllowedCallers } from '../core/operation.ts';
import {
  actorSchema,
  cardSchema,
  changeSchema,
  conversationSchema,
  messageSchema,
  noticeSchema,
} from '../core/serializers.ts';

/** A JSON Schema (2020-12), with the parts that zod uses. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | JsonSchema;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly description?: string;
  readonly pattern?: string;
  readonly format?: string;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly $defs?: Readonly<Record<string, JsonSchema>>;
}

/** The description of an operation, for documents. */
export interface OperationDescription {
  readonly name: string;
  readonly summary: string;
  /** One sentence on who may call it. */
  readonly who: string;
  /** The operation's own errors, and those that depend on who may call it; `commonErrors` are left out. */
  readonly errors: readonly ErrorCode[];
  readonly input: JsonSchema;
  readonly output: JsonSchema;
  /** Schemas that `input` and `output` refer to as `#/$defs/<name>`. */
  readonly shapes: Readonly<Record<string, JsonSchema>>;
}

/** Errors that every request can get. */
export const commonErrors: readonly ErrorCode[] = [
  'invalid_input',
  'too_large',
  'unsupported_media',
  'rate_limited',
  'request_timeout',
  'database_unavailable',
  'outcome_unknown',
  'starting',
  'stopping',
  'internal',
];

/** Schemas that appear in many places have a name in the documents. */
const NAMED_SHAPES = {
  Actor: actorSchema,
  Card: cardSchema,
  Message: messageSchema,
  Notice: noticeSchema,
  Change: changeSchema,
  Conversation: conversationSchema,
} as const;

/** Whether `POST /v1/api/<operation>` serves the operation. If not, only live connections or the command line do. */
export function isForHttp({ who, errors }: Operation): boolean {
  return who !== 'system' && !errors.includes('live_only');
}

/** The description of an operation, made from its definition. */
export function describeOperation(operation: Operation): OperationDescription {
  const { name, summary } = operation;
  const input = jsonSchemaOf(operation.input, 'input');
  const output = jsonSchemaOf(operation.output, 'output');
  return {
    name,
    summary,
    who: describeCallers(operation),
    errors: ownAndAccessErrors(operation),
    input: input.schema,
    output: output.schema,
    shapes: { ...input.shapes, ...output.shapes },
  };
}

function jsonSchemaOf(
  schema: z.ZodType,
  io: 'input' | 'output',
): { schema: JsonSchema; shapes: Record<string, JsonSchema> } {
  const named = z.registry<{ id: string }>();
  for (const [id, each] of Object.entries(NAMED_SHAPES)) named.add(each, { id });
  const override = (made: { jsonSchema: { additionalProperties?: unknown }; zodSchema: z.core.$ZodType }): void => {
    const { jsonSchema, zodSchema } = made;
    // A field with a check of its own, which zod cannot describe, has its JSON Schema in zod's registry.
    Object.assign(jsonSchema, z.globalRegistry.get(zodSchema));
    // Outputs may get more fields in later versions; clients ignore fields that they do not know.
    if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
  };
  const made = z.toJSONSchema(schema, { io, metadata: named, unrepresentable: 'any', override });
  const { $schema: _, $defs = {}, ...rest } = made as JsonSchema & { $schema?: string };
  return { schema: rest, shapes: { ...$defs } };
}

function describeCallers({ who, on, scope }: Operation): string {
  const bots = scope === null ? 'no bots' : `bots with the scope \`${scope}\` (${scopeMeanings[scope]})`;
  const target = on === 'conversation' ? 'conversation' : 'group';
  const above = on === 'conversation' ? '' : ', and administrators of the installation';
  const ofHook = on === 'hook' ? ' that the reverse webhook belongs to' : '';
  const sentences: Readonly<Record<AllowedCallers, string>> = {
    anybody: 'Anybody, signed in or not.',
    account: `Every account; ${bots}.`,
    person: 'People, with a session of their own; no bots.',
    administrator: 'Administrators of the installation; no bots.',
    system: "The command line on the server's machine alone.",
    member: `Members of the ${target}${ofHook}${above}; ${bots}.`,
    'group-admin': `Owners and admins of the ${target}${ofHook}${above}; ${bots}.`,
    'group-owner': `The owner of the ${target}${ofHook}${above}; ${bots}.`,
  };
  return sentences[who];
}

function ownAndAccessErrors({ who, on, scope, errors }: Operation): readonly ErrorCode[] {
  const all = new Set<ErrorCode>(errors);
  if (who !== 'anybody') all.add('unauthenticated');
  if (scope !== null || who === 'member' || who === 'group-admin' || who === 'group-owner') all.add('missing_scope');
  if (who !== 'anybody' && who !== 'account' && who !== 'member') all.add('forbidden');
  if (on !== null) all.add('not_found');
  if (on === 'group' || on === 'hook') all.add('not_a_group');
  return (Object.keys(errorKinds) as ErrorCode[]).filter((code) => all.has(code));
}
