--- The sidecar as one of Neovim's language-server clients, without buffers: Neovim frames, shakes hands and stops.
--- Keeps what the sidecar last said about each server, and the questions that wait for the person.

local M = {
  options = { cmd = { 'pillion', 'serve' } },
  ---@type table<string, table> the newest record of each server
  servers = {},
  ---@type table[] those that wait for an answer, in order
  questions = {},
}

local id ---@type integer?
local waiting = {} ---@type fun(client: vim.lsp.Client)[] what was asked before the handshake ended
local asking ---@type table? the question whose prompt is open
local tokens = 0

function M.notify(text, level)
  vim.notify('pillion: ' .. text, level or vim.log.levels.INFO)
end

function M.token()
  tokens = tokens + 1
  return 'nvim-' .. tokens
end

--- Parameters for the working directory, and for one server if it is named.
function M.at(server, params)
  return vim.tbl_extend('error', { directory = vim.fn.getcwd(), server = server }, params)
end

local function changed(params)
  local name, record = params.server, params.status
  local known = name and M.servers[name]
  if name and not record then
    M.servers[name] = nil
  elseif record and (not known or known.seq <= record.seq) then
    M.servers[name] = record -- a lower `seq` is old news
  end
  vim.api.nvim_exec_autocmds('User', { pattern = 'PillionChanged', data = params })
end

--- Asks the first question of the line, and after it the next one. Prompts never stack.
local function ask()
  local question = M.questions[1]
  if asking or not question then
    return
  end
  asking = question
  require('pillion.ui').question(question, function(action, content, remember)
    asking = nil
    if M.questions[1] == question then -- else it lapsed meanwhile, and the answer comes too late
      table.remove(M.questions, 1)
      local answer = { question = question.id, action = action, content = content, remember = remember }
      M.request('mcp.answer', answer, function(_, problem)
        if problem then
          M.notify(problem, vim.log.levels.WARN)
        end
      end)
    end
    ask()
  end)
end

local handlers = {
  ['mcp.changed'] = function(_, params)
    changed(params)
  end,
  ['mcp.question'] = function(_, params)
    table.insert(M.questions, params)
    ask()
  end,
  ['mcp.question.closed'] = function(_, params)
    M.questions = vim.tbl_filter(function(question)
      return question.id ~= params.question
    end, M.questions)
    -- An open prompt belongs to the person and stays; they are told that it lapsed.
    if asking and asking.id == params.question and params.reason ~= 'answered' then
      M.notify(('the question of %s is closed: %s'):format(asking.server, params.reason))
    end
  end,
  ['mcp.log'] = function(_, params)
    vim.api.nvim_exec_autocmds('User', { pattern = 'PillionLog', data = params })
  end,
}

--- The running sidecar, if there is one.
---@return vim.lsp.Client?
function M.running()
  local client = id and vim.lsp.get_client_by_id(id)
  return client and not client:is_stopped() and client or nil
end

local function start()
  id = vim.lsp.start({
    name = 'pillion',
    cmd = M.options.cmd,
    root_dir = vim.fn.getcwd(),
    init_options = {
      clientName = 'Neovim',
      capabilities = { questions = true, openUrl = true, urlQuestions = true },
    },
    workspace_folders = { { uri = vim.uri_from_fname(vim.fn.getcwd()), name = vim.fn.getcwd() } },
    handlers = handlers,
    flags = { exit_timeout = 500 }, -- Neovim then waits for the sidecar when it leaves itself
    on_init = function(client)
      local ready = waiting
      waiting = {}
      for _, send in ipairs(ready) do
        send(client)
      end
    end,
    on_exit = function(code, signal)
      M.servers, M.questions, waiting, id = {}, {}, {}, nil
      if code ~= 0 then
        vim.schedule(function()
          M.notify(('the sidecar ended with %d (signal %d), see :checkhealth pillion'):format(code, signal))
        end)
      end
    end,
  }, { attach = false })
  if not id then -- Neovim has said why
    waiting = {}
  end
end

--- Sends a request, starting the sidecar first if need be. `done` gets a result or a text that says what went wrong.
---@param done fun(result?: table, problem?: string)
function M.request(method, params, done)
  local function send(client)
    client:request(method, params, function(problem, result)
      local hint = problem and problem.data and problem.data.hint
      done(result, problem and (problem.message .. (hint and '\nhint: ' .. hint or '')))
    end)
  end
  local client = M.running()
  if client and client.initialized then
    return send(client)
  end
  table.insert(waiting, send)
  if not client then
    start()
  end
end

--- All pages of a list; what is missing from it is said once, beside it.
---@param done fun(items: table[])
function M.pages(method, params, done, items)
  items = items or {}
  M.request(method, params, function(page, problem)
    if not page then
      return M.notify(problem, vim.log.levels.ERROR)
    end
    vim.list_extend(items, page.items)
    for _, issue in ipairs(page.issues) do
      M.notify(issue.message, vim.log.levels.WARN)
    end
    if page.nextCursor then
      return M.pages(method, vim.tbl_extend('force', params, { cursor = page.nextCursor }), done, items)
    end
    done(items)
  end)
end

--- Stops the sidecar and with it every server.
function M.stop()
  local client = M.running()
  if client then
    client:stop()
  end
end

return M
