import type { Command } from 'commander';
import { errorKinds } from '../errors.ts';
import {
  commonErrors,
  describeOperation,
  isForHttp,
  type JsonSchema,
  type OperationDescription,
} from '../operations/describe/operation-docs.ts';
import { alternativesOf, fieldsOf } from '../operations/describe/schema-fields.ts';
import type { Operation } from '../operations/core/operation.ts';
import { operationTable } from '../operations/table.ts';
import { type CommandContext, print, printJson } from './core/context.ts';
import { exitCodes } from './core/exit-codes.ts';
import { CommandError } from './core/failure.ts';
import { formatTable } from '../../client/terminal/table.ts';
import { withExamples, withJson } from './core/options.ts';

/** Adds the commands that explain the operations for clients and bots. They do not connect to a server. */
export function addApiReference(program: Command, context: CommandContext): void {
  const api = program.command('api').description('explain the operations that clients and bots call');
  withExamples(api, ['klatch api list', 'klatch api describe messages.send']);
  const listCommand = api
    .command('list')
    .description('list every operation with what it does')
    .action(({ json }: { json?: boolean }) => listOperations(context, json === true));
  withExamples(withJson(listCommand), ['klatch api list', 'klatch api list --json']);
  const describeCommand = api
    .command('describe')
    .description('show who may call an operation, what it takes, what it answers and how it fails')
    .argument('<operation>', 'its name, such as messages.send')
    .action((name: string, { json }: { json?: boolean }) => showOperation(context, name, json === true));
  withExamples(withJson(describeCommand), [
    'klatch api describe messages.send',
    'klatch api describe messages.history --json',
  ]);
}

function listOperations(context: CommandContext, json: boolean): void {
  const all = [...operationTable().values()];
  const rows = all.map(({ name, summary, who, scope }) => ({ name, summary, who, scope }));
  if (json) printJson(context, rows);
  else
    print(
      context,
      ...formatTable(
        ['OPERATION', 'WHAT IT DOES'],
        rows.map(({ name, summary }) => [name, summary]),
      ),
    );
}

function showOperation(context: CommandContext, name: string, json: boolean): void {
  const operation = operationTable().get(name);
  if (operation === undefined) {
    throw new CommandError(exitCodes.usage, `There is no operation ${name}: "klatch api list" lists them`);
  }
  const description = describeOperation(operation);
  if (json) printJson(context, describeAsJson(operation, description));
  else print(context, ...formatOperationHelp(operation, description));
}

function describeAsJson({ scope, who }: Operation, description: OperationDescription): object {
  const { name, summary, errors, input, output, shapes } = description;
  return { name, summary, who, scope, errors, input, output, $defs: shapes };
}

function formatOperationHelp(
  operation: Operation,
  { name, summary, who, errors, input, output, shapes }: OperationDescription,
): string[] {
  const errorRows = [...new Set([...errors, ...commonErrors])].map((code) => [
    code,
    errorKinds[code].status,
    errorKinds[code].sentence,
  ]);
  return [
    `${name}: ${summary}`,
    '',
    `Who may:  ${withoutMarkup(who)}`,
    ...callLines(operation),
    '',
    ...schemaLines('INPUT', input),
    '',
    ...schemaLines('OUTPUT', output),
    ...Object.entries(shapes).flatMap(([shape, schema]) => ['', ...schemaLines(shape.toUpperCase(), schema)]),
    '',
    ...formatTable(['ERROR', 'STATUS', ''], errorRows),
  ];
}

/** Lines that explain how a client calls the operation; empty for an operation that clients may not call. */
function callLines(operation: Operation): string[] {
  const { name, who } = operation;
  if (who === 'system') return [];
  const liveCall = `"method":"${name}" on ws:// and tcp://`;
  return [`Call:     ${isForHttp(operation) ? `POST /v1/api/${name}, or ` : ''}${liveCall}`];
}

function schemaLines(sectionTitle: string, schema: JsonSchema): string[] {
  return alternativesOf(schema).flatMap((each, index) => {
    const heading = index === 0 ? sectionTitle : `OR ${sectionTitle}`;
    const separatorLines = index === 0 ? [] : [''];
    if (each.$ref !== undefined)
      return [...separatorLines, heading, `the shape ${each.$ref.split('/').at(-1)!.toUpperCase()}`];
    const fields = fieldsOf(each);
    if (fields.length === 0) return [...separatorLines, heading, 'nothing'];
    const rows = fields.flatMap(({ path, type, required, defaultValue, description }) => [
      [path, optionalityNote(sectionTitle, required, defaultValue), withoutMarkup(type)],
      ...(description === '' ? [] : [['', '', description.replaceAll('`', '')]]),
    ]);
    return [...separatorLines, ...formatTable([heading, '', ''], rows)];
  });
}

function optionalityNote(sectionTitle: string, required: boolean, defaultValue: string | null): string {
  if (sectionTitle !== 'INPUT') return required ? '' : 'or not';
  if (defaultValue !== null) return `else ${defaultValue}`;
  return required ? 'needed' : '';
}

/**
 * Prepares the name of a type from the documents for a terminal: removes Markdown's backticks, and writes `<shape>` as
 * SHAPE.
 */
function withoutMarkup(text: string): string {
  return text.replaceAll('`', '').replace(/<(\w+)>/g, (_, shape: string) => shape.toUpperCase());
}
