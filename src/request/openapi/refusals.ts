import type { Validation } from '../../contracts/validation.ts'

export type Refusal = Extract<Validation, { kind: 'invalid' }>

/** A closed list, because the codes are metric labels. */
const titles = {
  unreadable_query: 'The query is not valid percent-encoded UTF-8.',
  too_many_parameters: 'The query has more parameters than allowed.',
  invalid_parameter: 'A parameter does not fit the description of the operation.',
  missing_body: 'The operation needs a body.',
  invalid_body: 'The body does not fit the description of the operation.',
  unsupported_content_type: 'The operation does not take a body of this type.',
} as const

export type ErrorMember = {
  /** RFC 6901, in a URI fragment as RFC 9457 §3 shows it: into the body, or into the value of the parameter. */
  readonly pointer: string
  readonly parameter?: string
  readonly in?: string
  readonly detail: string
}

/** RFC 9457. Nothing of it repeats a value of the request. */
export const refuse = (
  code: keyof typeof titles,
  errors: readonly ErrorMember[] = [],
  status = 400,
): Refusal => ({
  kind: 'invalid',
  status,
  code,
  body: {
    type: 'about:blank',
    title: titles[code],
    status,
    code,
    ...(errors.length === 0 ? {} : { errors }),
  },
})

export const asFragment = (pointer: string): string => `#${encodeURI(pointer)}`
