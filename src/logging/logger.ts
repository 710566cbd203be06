import { type DestinationStream, destination, type Logger, pino } from 'pino'

export type LoggerOptions = {
  readonly level: string
  readonly format: 'json' | 'pretty'
  /** A line for many requests: then lines are not waited for. */
  readonly access: 'off' | 'sample' | 'all'
  /** Lines that were given up because whoever reads them is too slow. */
  readonly dropped: () => void
}

/** Beyond this, lines that nobody takes are given up instead of kept: a reader that stands still must not cost the memory. */
const mostWaitingBytes = 8 * 1024 * 1024

/**
 * Few lines are written at once, so that none is lost when the process ends. With an access log there are many: they are
 * handed to the kernel beside the work, at once and in order, and what is on its way is lost with a process that is killed.
 */
const destinationFor = ({ access, dropped }: LoggerOptions): DestinationStream => {
  if (access === 'off') return destination({ fd: 1, sync: true })
  const stream = destination({ fd: 1, sync: false, maxLength: mostWaitingBytes })
  stream.on('drop', dropped)
  return stream
}

/** Of an error only what says where it was made: libraries hang the octets that they stumbled over on theirs. */
const plainError = (error: Error): Record<string, unknown> => {
  const { type, message, stack, code } = pino.stdSerializers.err(error)
  return { type, message, code, stack }
}

/**
 * The process's logger. Nothing that a client sends is ever handed to it: no URL, no field, no content;
 * what tells requests apart is their id. Redaction is a second line of defence for what errors may carry.
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
  return format === 'pretty'
    ? pino({ ...settings, transport: { target: 'pino-pretty' } })
    : pino(settings, destinationFor(options))
}
