import { readFile } from 'node:fs/promises'
import type { ExplainedRequest } from '../../gateway/explain-sentences.ts'
import { headersOfLines } from '../../http/headers/header-lines.ts'
import type { CliPorts, ExitReason } from '../cli-ports.ts'
import type { JsonOption } from '../options.ts'
import type { Loaded } from '../read-config.ts'
import { jsonText } from '../texts.ts'
import { explanationText } from './explain-text.ts'

export type ExplainOptions = JsonOption & {
  readonly upstreams?: boolean
  readonly header?: readonly string[]
  /** The file with the body of the request. */
  readonly body?: string
}

export const explain = async (
  ports: CliPorts,
  { config }: Loaded,
  { method, target }: Pick<ExplainedRequest, 'method' | 'target'>,
  { header = [], body, upstreams = false, json = false }: ExplainOptions,
): Promise<ExitReason> => {
  const content = body === undefined ? undefined : await readFile(body).catch(() => null)
  if (content === null) {
    ports.stderr.write(`trellis: the file ${body} cannot be read\n`)
    return 'usage'
  }
  const request = { method, target, headers: headersOfLines(header) ?? {}, content }
  const explanation = await ports.explain(config, request, upstreams)
  ports.stdout.write(json ? jsonText(explanation) : explanationText(explanation))
  return 'ok'
}
