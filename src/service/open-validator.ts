import type { Validation, Validator } from './validation.ts'

const noArguments: Readonly<Record<string, unknown>> = Object.freeze({})

const tooMany: Validation = {
  kind: 'invalid',
  status: 400,
  code: 'too_many_parameters',
  // RFC 9457 §3.1: without a type the problem is about:blank, and its title is the status phrase.
  body: { title: 'Bad Request', status: 400, detail: 'The query has more parameters than allowed.' },
}

/** Checks bounds only. The query stays byte for byte the same: its meaning is not known. */
export const createOpenValidator = (options: {
  readonly limits: { readonly queryParameters: number }
}): Validator => ({
  validate: ({ query }) =>
    query.split('&', options.limits.queryParameters + 1).length > options.limits.queryParameters
      ? tooMany
      : { kind: 'valid', query, arguments: noArguments },
})
