import { pipeline } from 'node:stream'
import { Worker } from 'node:worker_threads'
import type { Clock } from '../clock.ts'
import type { RouteFinding } from '../contracts/row.ts'
import { unlimited } from '../http/bounds.ts'
import { fieldValue, type GatewayResponse, hasNoContent, targetParts, teeContent } from '../http/message.ts'
import { threadEntry } from '../package-file.ts'
import type { ResponseCheck, ResponseSample } from '../request/openapi-responses.ts'
import type { DiscoveryEvent, ResponseDifference } from './events.ts'

export type ResponseDriftOptions = {
  readonly service: string
  /** Most responses checked in one second; fractions are possible. */
  readonly perSecond: number
  /** Path in front of the paths of the document at the upstream. */
  readonly basePath: string
  /** The compressed JSON of the document with its files. */
  readonly document: Uint8Array
  readonly clock: Clock
  find(method: string, path: string): RouteFinding
  report(event: DiscoveryEvent): void
}

const mostBytes = 256 * 1024
const mostCollecting = 4
const mostDifferences = 500
/** Of the thread: GitHub's document takes 55 MB. */
const mostHeapMb = 512

const jsonType = /^application\/(?:[^;]+\+)?json\s*(?:;|$)/i
const partial = 206

/** Can the response be checked? */
const isJsonResponse = (method: string, { status, fields }: GatewayResponse): boolean =>
  !hasNoContent(method, status) &&
  status !== partial &&
  jsonType.test(fieldValue(fields, 'content-type') ?? '') &&
  Number(fieldValue(fields, 'content-length') ?? 0) <= mostBytes

/** Compares some responses of an upstream with its document, in its own thread. */
export const createResponseDrift = (options: ResponseDriftOptions) => {
  const { service, clock, report } = options
  const found = new Map<string, ResponseDifference>()
  let worker: Worker | undefined
  let hasEnded = false
  let inCheck: Omit<ResponseSample, 'content'> | undefined
  let collecting = 0
  let nextAt = 0

  const checked = (check: ResponseCheck): void => {
    const sample = inCheck
    inCheck = undefined
    if (sample === undefined) return
    const { result } = check
    const isNew = 'detail' in check && !found.has(sample.operation) && found.size < mostDifferences
    if (!isNew) {
      report({ kind: 'response-checked', service, result })
      return
    }
    const { operation, status } = sample
    const difference = { operation, status, pointer: check.pointer, detail: check.detail }
    found.set(operation, difference)
    report({ kind: 'response-checked', service, result, difference })
  }
  /** A thread that fails once would fail again: no more responses are checked until a reload of the document. */
  const failed = (cause: unknown): void => {
    if (hasEnded) return
    hasEnded = true
    report({ kind: 'response-checks-failed', service, cause })
  }
  const startWorker = (): Worker => {
    const { entry, eval: isScript } = threadEntry('check-responses')
    const started = new Worker(entry, {
      workerData: options.document,
      eval: isScript,
      resourceLimits: { maxOldGenerationSizeMb: mostHeapMb },
    })
    started.unref()
    started.on('message', checked)
    started.on('error', failed)
    started.on('exit', () => failed(new Error('the thread has ended')))
    return started
  }
  const send = (sample: Omit<ResponseSample, 'content'>, content: Buffer): void => {
    if (hasEnded || inCheck !== undefined) return
    inCheck = sample
    worker ??= startWorker()
    worker.postMessage({ ...sample, content: new Uint8Array(content) })
  }
  const collected = (sample: Omit<ResponseSample, 'content'>, response: GatewayResponse): GatewayResponse => {
    const { content } = response
    if (content === undefined) return response
    if (Buffer.isBuffer(content)) {
      if (content.length <= mostBytes) send(sample, content)
      return response
    }
    collecting += 1
    const length = fieldValue(response.fields, 'content-length')
    const tee = teeContent(
      mostBytes,
      length === undefined ? undefined : Number(length),
      unlimited,
      (whole) => {
        if (whole !== undefined) send(sample, whole)
      },
    )
    pipeline(content, tee, () => {
      collecting -= 1
    })
    return { ...response, content: tee }
  }

  return {
    /** The same response; the content of a chosen one is copied while it is sent. */
    sampled: (
      { method, target }: { readonly method: string; readonly target: string },
      response: GatewayResponse,
    ): GatewayResponse => {
      const now = clock.monotonic()
      if (now < nextAt || hasEnded || inCheck !== undefined || collecting >= mostCollecting) return response
      if (!isJsonResponse(method, response)) return response
      const { path } = targetParts(target.slice(options.basePath.length))
      const finding = options.find(method, path)
      const operation = finding.kind === 'found' ? finding.endpoint.operation : undefined
      if (operation === undefined || operation.isAmbiguous) return response
      nextAt = now + 1000 / options.perSecond
      const sample = {
        operation: `${operation.method} ${operation.template}`,
        status: response.status,
        contentType: fieldValue(response.fields, 'content-type') ?? '',
        coding: (fieldValue(response.fields, 'content-encoding') ?? '').toLowerCase(),
      }
      return collected(sample, response)
    },
    /** The first difference of each operation. */
    differences: (): readonly ResponseDifference[] => [...found.values()],
    close: async (): Promise<void> => {
      hasEnded = true
      await worker?.terminate()
    },
  }
}

export type ResponseDrift = ReturnType<typeof createResponseDrift>
