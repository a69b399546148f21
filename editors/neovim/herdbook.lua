-- Herdbook in Neovim: review comments in the margin, and the plan's commands.
--
-- Put this file where Neovim finds modules (~/.config/nvim/lua/herdbook.lua) and say in init.lua:
--   require("herdbook").setup()
-- It needs Neovim 0.7 or newer and the program `herdbook`; no plugin.

local M = {}

M.options = {
  -- How the server is started; a full path where `herdbook` is not on the PATH.
  cmd = { "herdbook", "rpc" },
  -- Which buffers it looks after: all files inside a git repository.
  pattern = "*",
}

local clients = {} -- on Neovim 0.7: the client of each root

local function tell(message, level)
  vim.notify("herdbook: " .. message, level or vim.log.levels.INFO)
end

--- The worktree that a file lies in: the nearest folder with a `.git`, which is a file in a worktree.
local function root_of(path)
  local folder = vim.fn.fnamemodify(path, ":p:h")
  while folder ~= "" do
    if vim.loop.fs_stat(folder .. "/.git") then
      return folder
    end
    local parent = vim.fn.fnamemodify(folder, ":h")
    if parent == folder then
      return nil
    end
    folder = parent
  end
end

--- Show above a file which agents change it too.
local function show_lenses(buffer)
  if vim.lsp.codelens.enable then
    return vim.lsp.codelens.enable(true, { bufnr = buffer })
  end
  vim.lsp.codelens.refresh({ bufnr = buffer })
  -- Such a Neovim cannot be told to ask again, so what others do is asked for when nothing is typed.
  vim.api.nvim_create_autocmd({ "BufEnter", "BufWritePost", "CursorHold" }, {
    group = "herdbook",
    buffer = buffer,
    callback = function()
      vim.lsp.codelens.refresh({ bufnr = buffer })
    end,
  })
end

local function configuration(root)
  return {
    name = "herdbook",
    cmd = M.options.cmd,
    cmd_cwd = root,
    root_dir = root,
    workspace_folders = { { uri = vim.uri_from_fname(root), name = vim.fn.fnamemodify(root, ":t") } },
    on_attach = function(_, buffer)
      show_lenses(buffer)
    end,
    on_exit = function()
      clients[root] = nil
    end,
  }
end

--- Attach Herdbook to a buffer; the id of the client, or nil where there is nothing to attach to.
function M.attach(buffer)
  buffer = (buffer and buffer ~= 0) and buffer or vim.api.nvim_get_current_buf()
  local path = vim.api.nvim_buf_get_name(buffer)
  if path == "" or path:match("^%w+://") or vim.bo[buffer].buftype ~= "" then
    return nil
  end
  local root = root_of(path)
  if not root then
    return nil
  end
  if vim.lsp.start then
    return vim.lsp.start(configuration(root), { bufnr = buffer })
  end
  clients[root] = clients[root] or vim.lsp.start_client(configuration(root))
  if clients[root] then
    vim.lsp.buf_attach_client(buffer, clients[root])
  end
  return clients[root]
end

local function all_clients()
  return (vim.lsp.get_clients or vim.lsp.get_active_clients)()
end

--- The client to talk to: this buffer's, else any.
function M.client()
  local other
  for _, client in ipairs(all_clients()) do
    if client.name == "herdbook" then
      if vim.lsp.buf_is_attached(0, client.id) then
        return client
      end
      other = other or client
    end
  end
  return other
end

--- Call any method of Herdbook, such as `task.list`; what comes back goes to `done(error, result)`.
function M.request(method, params, done)
  local client = M.client()
  if not client then
    return tell("no buffer is attached; open a file of a git repository", vim.log.levels.WARN)
  end
  params = params or vim.empty_dict()
  local function answered(failure, result)
    if done then
      done(failure, result)
    elseif failure then
      tell(failure.message, vim.log.levels.ERROR)
    end
  end
  if vim.fn.has("nvim-0.11") == 1 then
    return client:request(method, params, answered, 0)
  end
  return client.request(method, params, answered, 0)
end

--- Give a command of Herdbook: `claim`, `complete`, `grade`, `dismiss`, `resolve`, `unresolve`, `reply`.
function M.execute(command, params, done)
  local arguments = (params and next(params)) and { params } or nil
  local said = { command = "herdbook." .. command, arguments = arguments }
  return M.request("workspace/executeCommand", said, done)
end

--- Ask for some values one after the other, then go on; an empty answer to a needed one ends it.
local function asked(questions, found, go_on)
  local question = questions[1]
  if not question then
    return go_on(found)
  end
  vim.ui.input({ prompt = question.prompt .. ": ", default = question.default }, function(value)
    if value == nil or (value == "" and question.needed) then
      return
    end
    found[question.name] = value ~= "" and value or nil
    asked(vim.list_slice(questions, 2), found, go_on)
  end)
end

local QUESTIONS = {
  claim = { { name = "agent", prompt = "agent (empty: the one that acts here)" } },
  complete = {
    { name = "agent", prompt = "agent (empty: the one that acts here)" },
    { name = "task", prompt = "task (empty: the one that it holds)" },
    { name = "summary", prompt = "what came of it" },
  },
  grade = {
    { name = "agent", prompt = "agent", needed = true },
    { name = "commit", prompt = "commit", default = "HEAD", needed = true },
    { name = "user", prompt = "your grade (bad, neutral, good, excellent)", needed = true },
  },
  dismiss = { { name = "proposal_id", prompt = "proposal", needed = true } },
}

--- Ask for what a command needs, and give it.
function M.ask(command, done)
  asked(QUESTIONS[command], {}, function(params)
    M.execute(command, params, done)
  end)
end

--- Reply to a comment: the code action names it, and the text is asked for here.
function M.reply(comment, done)
  asked({ { name = "body", prompt = "reply", needed = true } }, {}, function(found)
    -- Who types here is a person, also where an agent works in the same folder.
    M.execute("reply", { comment_id = comment, body = found.body, author = "you" }, done)
  end)
end

--- Look after all buffers from now on, those that are open included.
function M.setup(options)
  M.options = vim.tbl_extend("force", M.options, options or {})
  vim.lsp.commands["herdbook.reply"] = function(command)
    M.reply(command.arguments[1])
  end
  vim.api.nvim_create_augroup("herdbook", { clear = true })
  vim.api.nvim_create_autocmd({ "BufReadPost", "BufNewFile" }, {
    group = "herdbook",
    pattern = M.options.pattern,
    callback = function(event)
      M.attach(event.buf)
    end,
  })
  vim.api.nvim_create_user_command("Herdbook", function(typed)
    if not QUESTIONS[typed.args] then
      return tell("say :Herdbook claim, complete, grade or dismiss", vim.log.levels.WARN)
    end
    M.ask(typed.args)
  end, {
    nargs = 1,
    desc = "Give a command of Herdbook",
    complete = function()
      return vim.tbl_keys(QUESTIONS)
    end,
  })
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(buffer) then
      M.attach(buffer)
    end
  end
end

return M
