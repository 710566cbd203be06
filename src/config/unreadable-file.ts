const reasons: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist',
  EACCES: 'the user of the process may not read it',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is not a folder',
}

/** Why a file cannot be read, for who can do something about it; behind it the code of the system. */
export const unreadableFile = (what: 'file' | 'secret file', cause: unknown): string => {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'no code'
  const reason = reasons[code]
  return `the ${what} cannot be read${reason === undefined ? '' : `, ${reason}`} (${code})`
}
