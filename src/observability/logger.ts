import { isatty } from 'node:tty'
import { type DestinationStream, destination, type Logger, pino } from 'pino'
import { prettyFactory } from 'pino-pretty'
import { readableLine } from './access-log.ts'

export type Log = Record<'info' | 'warn' | 'error', (facts: object, message: string) => void>

/** Values of a log line that need no redaction: texts and numbers without members. */
type Facts = Readonly<Record<string, string | number | boolean | undefined>>

export type FactsLogger = { info(facts: Facts, event: string): void }

/**
 * The same log, for lines of texts and numbers only. Redaction searches nested members of each value: for a line without objects
 * that is a third of its cost, and finds nothing.
 */
export const factsLogger = (logger: Logger): FactsLogger => {
  const child = logger.child({}, { redact: { paths: [] } })
  return {
    info: (facts, event) => {
      // A child keeps the level that its parent had.
      if (child.level !== logger.level) child.level = logger.level
      child.info(facts, event)
    },
  }
}

export const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevelName = (typeof logLevels)[number]

/** A level that an operator has set; `untilMs`: when that of the configuration applies again, in milliseconds since 1970. */
export type LogLevelChange = { readonly level: LogLevelName; readonly untilMs: number | undefined }

/** Changes the level while the process runs, and logs each change, whatever the level. */
export const createLogLevel = (logger: Logger, now: () => number) => {
  const configured = logger.level
  let changed: LogLevelChange | undefined
  let timer: NodeJS.Timeout | undefined
  const apply = (level: string, until: string | undefined): void => {
    const from = logger.level
    logger.level = 'info'
    logger.info({ from, to: level, until }, 'log-level')
    logger.level = level
  }
  const set = (change: LogLevelChange): void => {
    clearTimeout(timer)
    const { level, untilMs } = change
    changed = level === configured ? undefined : change
    apply(level, untilMs === undefined ? undefined : new Date(untilMs).toISOString())
    if (untilMs === undefined || changed === undefined) return
    timer = setTimeout(
      () => {
        changed = undefined
        apply(configured, undefined)
      },
      Math.max(0, untilMs - now()),
    ).unref()
  }
  return {
    state: () => ({
      level: logger.level,
      configured,
      until: changed?.untilMs === undefined ? undefined : new Date(changed.untilMs).toISOString(),
    }),
    set,
    /** The change in force; undefined: that of the configuration holds. */
    change: (): LogLevelChange | undefined => changed,
  }
}

export type LogLevel = ReturnType<typeof createLogLevel>

/** Passes one line for each key and period. Keys come from closed lists, so their number is bounded. */
export const createSampled = (everyMs: number, monotonic: () => number) => {
  const last = new Map<string, { at: number; held: number }>()
  return {
    /** Number of lines left out since the last one passed; undefined: leave this one out too. */
    pass: (key: string): number | undefined => {
      const lastLine = last.get(key)
      const now = monotonic()
      if (lastLine !== undefined && now - lastLine.at < everyMs) {
        lastLine.held += 1
        return undefined
      }
      last.set(key, { at: now, held: 0 })
      return lastLine?.held ?? 0
    },
  }
}

type LoggerOptions = {
  readonly level: string
  /** `auto`: `pretty` on a terminal. */
  readonly format: 'auto' | 'json' | 'pretty'
  /** Called for lines that were dropped because their reader is too slow. */
  readonly dropped: () => void
}

/** Above this size of unread lines, new lines are dropped: a stalled reader must not fill the memory. */
const maxWaitingBytes = 8 * 1024 * 1024

/** A reader that takes nothing for this long gets nothing more when the process ends. */
const stalledMs = 1_000

type FlushedStream = DestinationStream & { flushSync(): void }

const countOnly = (dropped: () => void) => (): boolean => {
  dropped()
  return true
}

/**
 * Lines are written asynchronously and in order: a pipe whose reader has stalled would stop the whole process at the first line that
 * does not fit. A killed process loses the lines in flight.
 */
const destinationFor = ({ dropped }: LoggerOptions): FlushedStream => {
  const stream = destination({ fd: 1, sync: false, maxLength: maxWaitingBytes })
  let failing = false
  /** When the first of the waiting lines came, or the last write ended; undefined: none waits. */
  let waitsSinceMs: number | undefined
  const write = stream.write.bind(stream)
  stream.write = (line) => {
    waitsSinceMs ??= performance.now()
    return write(line)
  }
  stream.on('drop', dropped)
  stream.on('write', () => {
    failing = false
    waitsSinceMs = performance.now()
  })
  stream.on('drain', () => {
    waitsSinceMs = undefined
  })
  // A full disk or a closed reader must not end the gateway: without a listener the error would.
  stream.on('error', ({ code }: NodeJS.ErrnoException) => {
    failing = true
    // pino has replaced `write` by a no-op: the output is closed for good. After any other error the next line is tried.
    if (code === 'EPIPE') stream.write = countOnly(dropped)
  })
  // Called at the end and for a fatal line: it retries until it can write, and the process would not exit.
  const flushSync = stream.flushSync.bind(stream)
  stream.flushSync = () => {
    const isStalled = waitsSinceMs !== undefined && performance.now() - waitsSinceMs > stalledMs
    if (failing || isStalled) return
    flushSync()
    // It emits no `drain`.
    waitsSinceMs = undefined
  }
  return stream
}

/**
 * Text for people is made in this thread. pino would use its own thread, which does not detect that its output is closed, and the
 * process would wait for it at the end.
 */
const asText = (stream: FlushedStream): FlushedStream => {
  const pretty = prettyFactory({ singleLine: true, translateTime: 'HH:MM:ss.l', ignore: 'hostname,pid' })
  const readable = (line: string): string => {
    // Quotes within a member are escaped: no text of a client looks like this.
    if (!line.includes('"msg":"request"')) return pretty(line)
    return `${readableLine(JSON.parse(line) as Parameters<typeof readableLine>[0])}\n`
  }
  return { write: (line) => stream.write(readable(line)), flushSync: () => stream.flushSync() }
}

/** The target was unreachable: the stack of the library adds nothing. */
const isUnreached = (error: Error): boolean => {
  let link: unknown = error
  for (let depth = 0; link instanceof Error && depth < 8; depth += 1) {
    if ('syscall' in link && (link.syscall === 'connect' || link.syscall === 'getaddrinfo')) return true
    link = link.cause
  }
  return false
}

/**
 * Only the origin of an error: libraries attach the octets that they failed on. pino puts the message
 * of a cause behind a colon, and ours end with a full stop, which is not to stand before one.
 */
const plainError = (error: Error): Record<string, unknown> => {
  const { type, message, stack, code } = pino.stdSerializers.err(error)
  const shown = { type, message: message.replaceAll('.: ', ': '), code }
  return isUnreached(error) ? shown : { ...shown, stack }
}

/**
 * The process's logger. It never receives what a client sends: no URL, no header, no content;
 * the id distinguishes requests. Redaction is a second line of defence for what errors may carry.
 */
export const createLogger = (options: LoggerOptions): Logger => {
  const { level, format } = options
  const settings = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    serializers: { err: plainError },
    redact: {
      paths: ['*.authorization', '*.cookie', '*.password', '*.token', '*.headers', 'err.opts', 'err.config'],
      censor: '[redacted]',
    },
  }
  const stream = destinationFor(options)
  const isText = format === 'pretty' || (format === 'auto' && isatty(1))
  return pino(settings, isText ? asText(stream) : stream)
}
