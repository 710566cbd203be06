import { errorTable } from '../../errors.ts'
import type { JsonFault } from '../../http/bodies/read-json.ts'
import type { Invalid } from '../../service/contract.ts'
import { type PhpQueryFault, routeParameter } from './php-query.ts'

/** Why a value is refused: WordPress's code and text, and `data` for its `details`. */
export type Issue = {
  readonly code: string
  readonly message: string
  readonly data: Readonly<Record<string, unknown>> | null
}

export const issueOf = (code: string, message: string): Issue => ({ code, message, data: null })

export const wrongType = (path: string, type: string): Issue => ({
  code: 'rest_invalid_type',
  message: `${path} is not of type ${type}.`,
  data: { param: path },
})

/** "a", "a and b", "a, b, and c". */
export const listInWords = (words: readonly string[]): string => {
  if (words.length < 2) return words[0] ?? ''
  if (words.length === 2) return `${words[0]} and ${words[1]}`
  return `${words.slice(0, -1).join(', ')}, and ${words.at(-1)}`
}

const refusal = (
  status: number,
  code: string,
  message: string,
  data: Readonly<Record<string, unknown>> = {},
): Invalid => ({
  kind: 'invalid',
  status,
  code,
  body: { code, message, data: { status, ...data } },
})

/** `params` is a list here and a map elsewhere. */
export const missingParameters = (names: readonly string[]): Invalid =>
  refusal(400, 'rest_missing_callback_param', `Missing parameter(s): ${names.join(', ')}`, { params: names })

/** `plain`: WordPress's text is "Invalid parameter.". */
export type InvalidArgument = { readonly name: string; readonly issue: Issue | 'plain' }

/** Arguments with wrong values, in the order given. Of an argument that is wrong in two sources the last issue counts. */
export const invalidParameters = (invalid: readonly InvalidArgument[]): Invalid => {
  const params: Record<string, string> = {}
  const details: Record<string, Issue> = {}
  for (const { name, issue } of invalid) {
    params[name] = issue === 'plain' ? 'Invalid parameter.' : issue.message
    if (issue !== 'plain') details[name] = issue
  }
  // PHP writes an empty dictionary as [].
  const phpDetails = Object.keys(details).length === 0 ? [] : details
  return refusal(400, 'rest_invalid_param', `Invalid parameter(s): ${Object.keys(params).join(', ')}`, {
    params,
    details: phpDetails,
  })
}

/** Codes and messages of PHP: json_last_error() and json_last_error_msg(). */
const jsonErrors: Readonly<Record<Exclude<JsonFault, 'too-many-values'>, readonly [number, string]>> = {
  depth: [1, 'Maximum stack depth exceeded'],
  control: [3, 'Control character error, possibly incorrectly encoded'],
  syntax: [4, 'Syntax error'],
  utf8: [5, 'Malformed UTF-8 characters, possibly incorrectly encoded'],
  surrogate: [10, 'Single unpaired UTF-16 surrogate in unicode escape'],
}

export const invalidJson = (fault: JsonFault): Invalid => {
  if (fault === 'too-many-values') return tooManyParameters()
  const [code, message] = jsonErrors[fault]
  return refusal(400, 'rest_invalid_json', errorTable.invalid_json.message, {
    json_error_code: code,
    json_error_message: message,
  })
}

/**
 * A parameter of the path has another value in the query or the content. WordPress would use that value and ignore the path.
 */
export const contradiction = (names: readonly string[]): Invalid =>
  refusal(400, 'trellis_ambiguous_request', errorTable.ambiguous_request.message, {
    params: Object.fromEntries(names.map((name) => [name, `${name} must equal the value in the path`])),
  })

export const noRouteOverride = 'The parameter rest_route is not accepted here.'

/** For a parameter of a form that WordPress would take before that of the path. */
export const misplacedParameter = (name: string): string =>
  name === routeParameter
    ? noRouteOverride
    : `The parameter ${name} of the path is not accepted in this form.`

/** WordPress would take it for the route, in place of the path. */
export const routeOverride = (): Invalid =>
  refusal(400, 'trellis_ambiguous_request', `${errorTable.ambiguous_request.message} ${noRouteOverride}`)

/** PHP drops parameters beyond its limit silently, so the request would mean something else there. */
const tooManyParameters = (): Invalid =>
  refusal(400, 'trellis_too_many_parameters', 'The request has more parameters than allowed.')

/** A query or a form that was not read. */
export const unreadQuery = (fault: PhpQueryFault): Invalid => {
  switch (fault) {
    case 'too-many-parameters':
      return tooManyParameters()
    case 'name-too-long':
      return refusal(400, 'trellis_parameter_name_too_long', 'A parameter has a longer name than allowed.')
    case 'list-too-long':
      return refusal(400, 'trellis_list_too_long', 'A list of fields or relations is longer than allowed.')
  }
}

/** The content is neither JSON nor a form, and the endpoint takes no uploads. */
export const unsupportedContentType = (): Invalid =>
  refusal(415, 'trellis_unsupported_content_type', errorTable.unsupported_content_type.message)

/** The JSONP callback is not an identifier; WordPress sends this error without data. */
export const invalidCallback = (): Invalid => ({
  kind: 'invalid',
  status: 400,
  code: 'rest_callback_invalid',
  body: { code: 'rest_callback_invalid', message: 'Invalid JSONP callback function.' },
})
